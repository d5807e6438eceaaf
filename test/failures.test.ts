/** The pages for refusals and outages: an explanation, an action, and never the record of another patient. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { TestAuthServer } from '../src/auth/testing/test-auth-server.ts'
import { openTestStore } from '../src/auth/testing/test-store.ts'
import { listen } from '../src/web/http/index.ts'
import { inspectOnEveryScreen, useBrowser } from './support/browser.ts'
import { freePorts } from './support/free-ports.ts'
import { type Stack, startStack } from './support/stack.ts'
import { launch, logIn, openPatient, signIn } from './support/walk.ts'

let now = Date.now()
let stack: Stack
before(async () => {
  stack = await startStack({ clock: () => now })
})
after(() => stack?.close())
const open = useBrowser()

async function inApp(page: Page): Promise<void> {
  await logIn(page, stack)
  await openPatient(page, stack)
  await launch(page, stack)
}

/** The heading of the page, once it is an error page with a reference. */
async function refusalOn(page: Page): Promise<string> {
  await page.getByText('Reference').waitFor()
  return (await page.getByRole('heading', { level: 1 }).textContent()) ?? ''
}

describe('refusals', () => {
  it('open nothing for a launch link that was used before (LAUNCH-9)', async () => {
    const { page } = await open()
    const links: string[] = []
    page.on('request', request => {
      if (request.url().startsWith(`${stack.settings.appUrl}/launch?`)) links.push(request.url())
    })
    await inApp(page)
    await page.goto(links[0] ?? '')
    assert.match(await refusalOn(page), /refused|cannot be continued/)
    await page.getByText('No record was opened.').waitFor()
    await inspectOnEveryScreen(page, 'launch-refused')
  })

  it('open nothing for a callback that this browser did not start', async () => {
    const { page } = await open()
    await page.goto(
      `${stack.settings.appUrl}/callback?code=x&state=${'y'.repeat(43)}&iss=${stack.settings.issuerUrl}`,
    )
    assert.equal(await refusalOn(page), 'This launch cannot be continued')
    await inspectOnEveryScreen(page, 'callback-refused')
  })

  it('do not follow a launch from an unknown FHIR server', async () => {
    const { page } = await open()
    await page.goto(`${stack.settings.appUrl}/launch?iss=http%3A%2F%2Fevil.example%2Ffhir&launch=x`)
    assert.equal(await refusalOn(page), 'This app is not set up for that FHIR server')
  })

  it('show a page, without a redirect, for an unknown client', async () => {
    const { page } = await open()
    await page.goto(
      `${stack.settings.issuerUrl}/oauth2/authorize?response_type=code&client_id=nobody&redirect_uri=http%3A%2F%2Fevil.example`,
    )
    assert.equal(new URL(page.url()).origin, stack.settings.issuerUrl)
    await refusalOn(page)
    await inspectOnEveryScreen(page, 'authorize-refused')
  })

  for (const server of ['issuerUrl', 'appUrl'] as const) {
    it(`show a page with a link for an unknown path (${server})`, async () => {
      const { page } = await open()
      await page.goto(`${stack.settings[server]}/nowhere?code=secret`)
      assert.equal(await refusalOn(page), 'Page not found')
      await inspectOnEveryScreen(page, `not-found-${server}`)
      await page.getByRole('link', { name: 'Go to the start page' }).click()
      assert.notEqual(await page.getByRole('heading', { level: 1 }).textContent(), 'Page not found')
    })
  }
})

describe('sign-out', () => {
  it('ends the login, and the portal requires it again', async () => {
    const { page } = await open()
    await signIn(page, stack)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.goto(`${stack.settings.issuerUrl}/portal`)
    assert.equal(new URL(page.url()).pathname, '/login')
  })

  it('has a page with a button', async () => {
    const { page } = await open()
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/logout`)
    await inspectOnEveryScreen(page, 'sign-out')
    await page.getByRole('main').getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    assert.equal(new URL(page.url()).pathname, '/login')
    await inspectOnEveryScreen(page, 'signed-out')
  })
})

describe('error pages', () => {
  it('explain an ended session and show no record', async () => {
    const { page } = await open()
    await inApp(page)
    now += 31 * 60_000
    await page.goto(`${stack.settings.appUrl}/`)
    assert.match((await page.getByRole('heading', { level: 1 }).textContent()) ?? '', /session/i)
    assert.equal(await page.getByText('Juniper').count(), 0)
    await inspectOnEveryScreen(page, 'session-ended')
  })

  it('explain an outage of the FHIR server, in the portal and in the app', async () => {
    const [portal, app] = [await open(), await open()]
    await logIn(portal.page, stack)
    await inApp(app.page)
    await stack.fhir.close()
    await portal.page.goto(`${stack.settings.issuerUrl}/portal`)
    assert.equal(await refusalOn(portal.page), 'Patient records cannot be reached')
    await portal.page.getByText('downtime procedure').waitFor()
    await inspectOnEveryScreen(portal.page, 'portal-away')
    await app.page.reload()
    await app.page.getByRole('heading', { level: 1, name: /cannot be reached/ }).waitFor()
    await inspectOnEveryScreen(app.page, 'app-away')
  })
})

describe('plain http off loopback', () => {
  const openOther = openTestStore()

  // There a browser sends no Sec-Fetch-Site, and `Origin: null` from a page with the policy no-referrer.
  it('allows a clinician to sign in, and sends no referrer to other sites', async () => {
    const [port = 0] = await freePorts(1)
    const issuerUrl = `http://ehr.test:${port}`
    const seen: (string | undefined)[] = []
    const other = createServer((request, response) => {
      // The browser requests the icon of the app's page with that page as its referrer.
      if (request.url?.startsWith('/launch')) seen.push(request.headers.referer)
      response.end('app')
    })
    await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
    const launch_url = `http://app.test:${(other.address() as AddressInfo).port}/launch`
    const auth = await TestAuthServer.open(await openOther(), {
      settings: { issuerUrl, onLoopback: false, bind: ['0.0.0.0'], defaultClientId: 'plain' },
    })
    await auth.addClient({ client_id: 'plain', launch_url, redirect_uris: JSON.stringify([launch_url]) })
    await listen(auth.app, port, ['127.0.0.1'])
    try {
      const { page } = await open()
      await page.goto(`${issuerUrl}/login`)
      await page.getByLabel('Username').fill('clinician')
      await page.getByLabel('Password').fill('sallyport')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.waitForURL(`${issuerUrl}/portal`)
      await page.goto(`${issuerUrl}/portal?patient=juniper`)
      await page.getByRole('button', { name: /^Launch (?!settings)/ }).click()
      await page.waitForURL(`${launch_url}?*`)
      assert.ok(seen.length > 0)
      assert.deepEqual([...new Set(seen)], [undefined])
    } finally {
      await auth.app.close()
      other.close()
    }
  })
})
