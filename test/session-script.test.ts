/** The demo app in a real browser: countdown, warning, Keep working, end, two patients side by side. */
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import { after, afterEach, before, describe, it } from 'node:test'
import type { FrameLocator, Page } from 'playwright-core'
import { findRecords } from '../src/audit/index.ts'
import {
  expectAccessible,
  inspectOnEveryScreen,
  screenshot,
  useBrowser,
  type WatchedPage,
} from './support/browser.ts'
import { freePorts } from './support/free-ports.ts'
import { type Stack, startStack } from './support/stack.ts'
import { launch, logIn, openPatient } from './support/walk.ts'

let stack: Stack
before(async () => {
  stack = await startStack()
})
after(() => stack.close())
const open = useBrowser()

let signedIn: Promise<WatchedPage> | undefined

// The pages of earlier tests would go on asking.
afterEach(async () => {
  const { context } = (await signedIn) ?? {}
  await Promise.all((context?.pages() ?? []).slice(1).map(page => page.close()))
})

/** One browser that is signed in to the portal. */
function enterPortal(): Promise<WatchedPage> {
  signedIn ??= open().then(async watched => {
    await logIn(watched.page, stack)
    return watched
  })
  return signedIn
}

/** A page with the record. */
async function enter(): Promise<WatchedPage> {
  const { context, faults } = await enterPortal()
  const page = await context.newPage()
  await openPatient(page, stack)
  await launch(page, stack)
  return { context, faults, page }
}

/** Simulates the return of the user to the tab: the script checks at once. It may have checked, and left, before. */
async function comeBack(page: Page): Promise<void> {
  await page
    .evaluate(() => {
      document.dispatchEvent(new Event('visibilitychange'))
    })
    .catch((error: Error) => assert.match(error.message, /navigation|context was destroyed/))
}

/** What the browser complained about, but for the answers that the script asks for. */
function unexpected(faults: readonly string[]): readonly string[] {
  return faults.filter(fault => !/status of (401|409)/.test(fault))
}

interface Changes {
  readonly idle_expires_at?: number
  readonly max_expires_at?: number
  readonly scope?: string
  readonly need_patient_banner?: boolean
}

async function change(columns: Changes): Promise<void> {
  await stack.store.db.updateTable('app_session').set(columns).execute()
}

describe('session.js', () => {
  it('warns before the idle time ends, and "Keep working" extends the session', async () => {
    const { page, faults } = await enter()
    const warning = page.locator('#session-soon')
    assert.equal(await warning.isVisible(), false)
    await change({ idle_expires_at: Date.now() + 170_000 })
    await comeBack(page)
    await warning.waitFor()
    await page.getByText('2 min left').waitFor()
    await expectAccessible(page)
    await page.getByRole('link', { name: 'Keep working' }).click()
    await warning.waitFor({ state: 'hidden' })
    await page.getByText('29 min left').waitFor()
    assert.deepEqual(unexpected(faults), [])
  })

  it('explains that the session cannot be extended', async () => {
    const { page } = await enter()
    await change({ max_expires_at: Date.now() + 170_000 })
    await page.reload()
    await page.getByText('Your session ends soon and cannot be extended.').waitFor()
    assert.equal(await page.getByRole('link', { name: 'Keep working' }).isVisible(), false)
  })

  it('closes the record when the session has ended (DEMO-4)', async () => {
    const { page } = await enter()
    await stack.store.db.deleteFrom('app_session').execute()
    await comeBack(page)
    await page.getByRole('heading', { level: 1, name: 'Your session has ended' }).waitFor()
    await page.getByText('It is no longer open.').waitFor()
    assert.equal(await page.getByText('Juniper').count(), 0)
  })

  it('closes the record when the user returns after access was removed', async () => {
    const { page } = await enter()
    await stack.store.db.updateTable('grant').set({ revoked_at: Date.now() }).execute()
    await comeBack(page)
    await page.getByRole('heading', { level: 1, name: 'Your session has ended' }).waitFor()
    assert.equal(await page.getByText('Juniper').count(), 0)
  })

  it('closes the record in the background after a sign-out elsewhere, without a refusal in the audit trail (DEMO-4)', async () => {
    const { page, context } = await enter()
    const findLastRecord = async () => {
      await stack.audit.flush()
      return findRecords(stack.store, { limit: 1, order: 'newest' })
    }
    await page.clock.install()
    await page.reload()
    await page.getByText('Juniper').first().waitFor()
    const before = await findLastRecord()
    const checked = page.waitForResponse(response => response.request().method() === 'HEAD')
    await page.clock.fastForward(21_000)
    assert.equal((await checked).status(), 200)
    assert.deepEqual(await findLastRecord(), before)
    const elsewhere = await context.newPage()
    await elsewhere.goto(`${stack.settings.issuerUrl}/manage`)
    await elsewhere.getByRole('button', { name: 'Sign out' }).click()
    await elsewhere.getByText('You are signed out.').waitFor()
    await page.clock.fastForward(21_000)
    await page.getByRole('heading', { level: 1, name: 'Your session has ended' }).waitFor()
    assert.equal(await page.getByText('Juniper').count(), 0)
    signedIn = undefined
    await stack.audit.flush()
    const [last] = before
    const later = await findRecords(stack.store, { limit: 50, order: 'newest' })
    const since = later.filter(({ id }) => id > (last?.id ?? 0))
    assert.ok(
      since.some(({ kind, reason }) => kind === 'session-end' && reason?.startsWith('The user signed out')),
    )
    assert.deepEqual(
      since.filter(({ allowed }) => !allowed),
      [],
    )
  })

  it('closes the list of open sessions when one of them ends in another tab (DEMO-4)', async () => {
    await stack.store.db.deleteFrom('app_session').execute()
    const { page, context } = await enter()
    const list = await context.newPage()
    await list.goto(stack.settings.appUrl)
    await list.getByRole('link', { name: /^Juniper/ }).waitFor()
    await list.getByText(/^As of \d\d:\d\d/).waitFor()
    await page.getByRole('button', { name: 'End session' }).click()
    await page.getByText('It was ended in this browser.').waitFor()
    await list.getByRole('heading', { level: 1, name: 'No record is open' }).waitFor()
    assert.equal(await list.getByText('Juniper').count(), 0)
  })

  it('hides a page that the browser keeps for Back, and loads it again before it is shown (DEMO-4)', async () => {
    const { page } = await enter()
    await page.evaluate(() => dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true })))
    assert.equal(await page.getByText('Juniper').first().isVisible(), false)
    await stack.store.db.updateTable('app_session').set({ ended_at: Date.now() }).execute()
    await page.evaluate(() => {
      dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))
    })
    await page.getByRole('heading', { level: 1, name: 'Your session has ended' }).waitFor()
  })
})

describe('two patients side by side', () => {
  const shows = (page: Page, name: string) =>
    page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
  const ALBA = 'Juniper, Alba (Ms)'
  const ALBAN = 'Juniper, Alban'

  /** Both launches begin before one of them ends. */
  async function enterBoth(): Promise<readonly [alba: Page, alban: Page]> {
    await stack.store.db.deleteFrom('app_session').execute()
    const { context } = await enterPortal()
    const pages = [await context.newPage(), await context.newPage()] as const
    for (const [at, page] of pages.entries()) await openPatient(page, stack, `patient-${at + 1}`)
    await Promise.all(pages.toReversed().map(page => launch(page, stack)))
    return pages
  }

  it('stay themselves after reloads, in copies of a tab, and with Back (SESSION-6, DEMO-5)', async () => {
    const [alba, alban] = await enterBoth()
    for (const page of [alba, alban, alba]) await page.reload()
    await shows(alba, ALBA)
    await shows(alban, ALBAN)
    await comeBack(alba)
    await alba.getByText('Similar name, also open in this browser: Juniper, Alban').waitFor()
    await expectAccessible(alba)
    const copy = await alba.context().newPage()
    await copy.goto(alba.url())
    await shows(copy, ALBA)
    await copy.getByRole('link', { name: 'Open sessions (2)' }).click()
    await inspectOnEveryScreen(copy, 'app-sessions')
    await copy.getByRole('link', { name: 'Juniper, Alban' }).click()
    await shows(copy, ALBAN)
    await copy.goBack()
    await copy.goBack()
    await shows(copy, ALBA)
    const statuses = await copy.evaluate(
      async id => [
        (await fetch('/api/patient')).status,
        (await fetch('/api/patient', { headers: { 'X-Session-Id': id } })).status,
      ],
      new URL(alban.url()).pathname.slice('/s/'.length),
    )
    assert.deepEqual(statuses, [409, 200])
  })

  it('warn of a similar name even if only one of them is open (DEMO-5)', async () => {
    await stack.store.db.deleteFrom('app_session').execute()
    const { page } = await enter()
    await page.getByText('Another patient has a similar name.').waitFor()
  })

  it('end one by one, and a tab of the ended one shows neither', async () => {
    const [alba, alban] = await enterBoth()
    await alba.getByRole('button', { name: 'End session' }).click()
    await shows(alba, 'Your session has ended')
    await alba.goBack()
    await shows(alba, 'Your session has ended')
    assert.equal(await alba.getByText('Juniper').count(), 0)
    await alban.reload()
    await shows(alban, ALBAN)
  })

  it('open in a restored browser and without scripts, but not in a browser without the cookies (SESSION-6)', async () => {
    const [alba, alban] = await enterBoth()
    const storageState = await alba.context().storageState()
    const { page: restored } = await open({ storageState, javaScriptEnabled: false })
    await restored.goto(alba.url())
    await shows(restored, ALBA)
    await restored.goto(alban.url())
    await shows(restored, ALBAN)
    await restored.goto(stack.settings.appUrl)
    await restored.getByRole('button', { name: 'End session of Juniper, Alban' }).click()
    await shows(restored, 'Your session has ended')
    await restored.goto(alba.url())
    await shows(restored, ALBA)
    const { page: stranger } = await open()
    await stranger.goto(alba.url())
    await shows(stranger, 'This session is not open in this browser')
    await inspectOnEveryScreen(stranger, 'app-elsewhere')
    await comeBack(alban)
    await shows(alban, 'Your session has ended')
  })
})

/** An EHR of another site, and one of the site of the servers, whose pages show the app in a frame. */
describe('the app in a frame', () => {
  let framed: Stack
  let ehr: Server
  let port: number
  before(async () => {
    ;[port = 0] = await freePorts(1)
    const origins = `http://ehr.test:${port},http://localhost:${port}`
    framed = await startStack({ env: { SMART_APP_FRAME_ORIGINS: origins } })
    ehr = createServer((request, response) => {
      const source = new URL(request.url ?? '', 'http://ehr.test').searchParams.get('frame') ?? ''
      response
        .setHeader('content-type', 'text/html')
        .end(`<iframe width="900" height="700" src="${source.replaceAll('&', '&amp;')}"></iframe>`)
    }).listen(port)
  })
  after(async () => {
    ehr.close()
    await framed.close()
  })

  /** The URL to which the portal sends the browser for a launch. */
  async function prepareLaunch({ page }: WatchedPage): Promise<string> {
    const form = { patientId: 'patient-1' }
    const url = `${framed.settings.issuerUrl}/portal/launch`
    return (await page.request.post(url, { form, maxRedirects: 0 })).headers().location ?? ''
  }

  async function openFrame(page: Page, host: string, source: string): Promise<FrameLocator> {
    await page.goto(`http://${host}:${port}/?frame=${encodeURIComponent(source)}`)
    return page.frameLocator('iframe')
  }

  let clinician: Promise<WatchedPage> | undefined
  /** One browser of a clinician who is signed in to the portal. */
  function useClinician(): Promise<WatchedPage> {
    clinician ??= open().then(async watched => {
      await logIn(watched.page, framed)
      return watched
    })
    return clinician
  }

  const shows = (inside: FrameLocator | Page, name: string) =>
    inside.getByRole('heading', { level: 1, name }).waitFor()

  it('opens without a click on the site of the auth server (FRAME-2)', async () => {
    const watched = await useClinician()
    const { page, context } = watched
    const frame = await openFrame(page, 'localhost', await prepareLaunch(watched))
    await shows(frame, 'Juniper, Alba')
    const cookies = (await context.cookies()).filter(({ name }) => name.startsWith('sallyport-session-'))
    assert.deepEqual(
      cookies.map(({ sameSite, secure }) => [sameSite, secure]),
      [['None', true]],
    )
    await frame.getByRole('button', { name: 'End session' }).click()
    await shows(frame, 'Your session has ended')
  })

  it('signs in in a window on another site, and opens in the frame (FRAME-2)', async () => {
    const watched = await useClinician()
    const { page, context } = watched
    const frame = await openFrame(page, 'ehr.test', await prepareLaunch(watched))
    await shows(frame, 'Sign in to open the record')
    await screenshot(page, 'frame-sign-in')
    const opening = context.waitForEvent('page')
    await frame.getByRole('link', { name: 'Sign in' }).click()
    const popup = await opening
    await shows(frame, 'Juniper, Alba')
    if (!popup.isClosed()) await popup.waitForEvent('close')
    const [, inside] = page.frames()
    await inside?.goto(inside.url())
    await shows(frame, 'Juniper, Alba')
  })

  it('opens in a new tab if the browser keeps no cookies in the frame (FRAME-3)', async () => {
    const watched = await useClinician()
    const { page, context } = watched
    await context.clearCookies({ name: 'sallyport-app-frame' })
    // The redirect of the first request, without the cookie that came with it.
    const frame = await openFrame(page, 'ehr.test', `${await prepareLaunch(watched)}&frame=1`)
    await shows(frame, 'Open the record in a new tab')
    const opening = context.waitForEvent('page')
    await frame.getByRole('link', { name: 'Open in a new tab' }).click()
    await shows(await opening, 'Juniper, Alba')
  })

  it('is not shown by a page of any other origin (FRAME-1)', async () => {
    const { page } = await useClinician()
    const frame = await openFrame(page, 'evil.test', framed.settings.appUrl)
    await page.waitForTimeout(200)
    assert.equal(await frame.getByRole('heading', { level: 1 }).count(), 0)
  })
})

describe('further pages of the app', () => {
  it('are accessible on every screen', async () => {
    await stack.store.db.deleteFrom('app_session').execute()
    const { page, faults } = await enter()
    const { appUrl } = stack.settings
    await change({ scope: 'launch patient/Condition.rs' })
    await page.reload()
    await page.getByRole('heading', { level: 1, name: 'Name not shared with this app' }).waitFor()
    await inspectOnEveryScreen(page, 'app-unshared')
    await change({ scope: 'launch patient/Patient.rs', need_patient_banner: false })
    await page.reload()
    assert.equal(await page.getByRole('region', { name: 'Patient' }).count(), 0)
    await inspectOnEveryScreen(page, 'app-unbannered')
    for (const [path, title, name] of [
      ['/docs', 'Session API', 'docs'],
      ['/logout', 'End this session?', 'app-logout'],
    ] as const) {
      await page.goto(appUrl + path)
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
      await inspectOnEveryScreen(page, name)
    }
    await page.getByRole('button', { name: 'End session' }).click()
    await page.getByRole('heading', { level: 1, name: 'Your session has ended' }).waitFor()
    await inspectOnEveryScreen(page, 'app-ended')
    await page.goto(appUrl)
    await page.getByRole('heading', { level: 1, name: 'No record is open' }).waitFor()
    await inspectOnEveryScreen(page, 'app-welcome')
    assert.deepEqual(unexpected(faults), [])
  })
})
