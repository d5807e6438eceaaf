/** The end of a sign-in by inactivity, in a real browser: the warning, several tabs, and the record in our app. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { expectNoViolation, inspectOnEveryScreen, useBrowser } from './support/browser.ts'
import { type Stack, startStack } from './support/stack.ts'
import { launch, logIn, openPatient } from './support/walk.ts'

const IDLE_SECONDS = 600

let stack: Stack
/** How much later it is for the servers and in the browsers, in milliseconds. */
let later = 0
before(async () => {
  stack = await startStack({
    clock: () => Date.now() + later,
    env: { SMART_LOGIN_IDLE_SECONDS: String(IDLE_SECONDS), SMART_SESSION_IDLE_SECONDS: '3600' },
  })
})
after(() => stack.close())
const open = useBrowser()

/** Time passes for the servers and in a browser. */
async function pass(context: BrowserContext, seconds: number): Promise<void> {
  later += seconds * 1000
  await context.clock.fastForward(seconds * 1000)
}

async function enter() {
  const watched = await open()
  await watched.context.clock.install({ time: Date.now() + later })
  await logIn(watched.page, stack)
  await openWatched(watched.page)
  return { ...watched, pass: (seconds: number) => pass(watched.context, seconds) }
}

/** Opens a page of the user, and waits until its script knows when the sign-in ends. */
async function openWatched(page: Page, path = '/portal'): Promise<void> {
  await asked(page, () => page.goto(stack.settings.issuerUrl + path))
}

/** Waits until the script has asked the server again. */
async function asked(page: Page, act: () => Promise<unknown>): Promise<void> {
  const [state] = await Promise.all([
    page.waitForResponse(response => response.url().endsWith('/login/state')),
    act(),
  ])
  await state.finished()
}

const warning = (page: Page) => page.getByRole('alertdialog', { name: 'Are you still there?' })
const signedOut = (page: Page) =>
  page.getByText('You were signed out because you were inactive for 10 minutes.')

/** Uses a page, and waits until it has reported that. */
async function use(
  page: Page,
  act: (page: Page) => Promise<void> = it => it.keyboard.press('Shift'),
  path = '/login/state',
): Promise<void> {
  const [report] = await Promise.all([
    page.waitForResponse(it => it.request().method() === 'POST' && it.url().endsWith(path)),
    act(page),
  ])
  await report.finished()
}

/** A busy browser makes one event of several moves, and none in a tab behind another: so there are several, with pauses. */
async function movePointer(page: Page): Promise<void> {
  await page.bringToFront()
  for (const at of [100, 110, 120, 130, 140, 150]) {
    await page.mouse.move(at, 300)
    await page.waitForTimeout(200)
  }
}

describe('a sign-in that is not used', () => {
  it('warns a minute before its end, and goes on with one click or with Escape', async () => {
    const { page, pass, faults } = await enter()
    await page.getByLabel('Find a patient by name').focus()
    for (const answer of ['click', 'Escape'] as const) {
      await asked(page, () => pass(IDLE_SECONDS - 120))
      assert.equal(await warning(page).isVisible(), false)
      await pass(65)
      await warning(page).waitFor()
      const stay = page.getByRole('button', { name: 'Stay signed in' })
      assert.equal(await stay.evaluate(button => button === document.activeElement), true)
      assert.match(await page.title(), /^Sign-out in \d+ s – /)
      assert.match(await warning(page).innerText(), /signed out in \d+ seconds/)
      // A pointer that only passes over the page is no answer.
      await page.mouse.move(20, 30)
      await page.mouse.move(40, 50)
      if (answer === 'click') {
        await expectNoViolation(page)
        await inspectOnEveryScreen(page, 'idle-warning')
        await stay.click()
      } else await page.keyboard.press('Escape')
      await warning(page).waitFor({ state: 'hidden' })
      assert.equal(await page.title(), 'Patients – Sallyport')
      const field = page.getByLabel('Find a patient by name')
      assert.equal(await field.evaluate(input => input === document.activeElement), true)
    }
    assert.deepEqual(faults, [])
  })

  it('ends at its time, and the page closes', async () => {
    const { page, pass, context } = await enter()
    const hidden = await context.newPage()
    await openWatched(hidden, '/manage')
    await pass(IDLE_SECONDS - 40)
    await warning(page).waitFor()
    await pass(41)
    await signedOut(page).waitFor()
    await signedOut(hidden).waitFor()
    await page.getByText('Records that you opened in other apps may still be open there.').waitFor()
    await inspectOnEveryScreen(page, 'idle-signed-out')
  })

  it('is in use while somebody types or moves the pointer, in any tab', async () => {
    const { page, context, pass } = await enter()
    const other = await context.newPage()
    await openWatched(other, '/account')
    for (const _ of [1, 2, 3, 4]) {
      await asked(other, () => pass(IDLE_SECONDS / 2))
      await use(other)
    }
    await asked(page, () => pass(IDLE_SECONDS / 2))
    await use(page, it => it.getByLabel('Find a patient by name').press('J'))
    // The key is reported at once, and the input that follows it half a minute later.
    await asked(page, () => pass(31))
    await asked(page, () => pass(IDLE_SECONDS / 2))
    await use(page, movePointer)
    await asked(other, () => pass(IDLE_SECONDS - 120))
    assert.equal(await warning(other).isVisible(), false)
    // The warning is open in both tabs, and one answer closes both.
    await pass(65)
    await warning(page).waitFor()
    await warning(other).waitFor()
    await page.getByRole('button', { name: 'Stay signed in' }).click()
    await warning(page).waitFor({ state: 'hidden' })
    await warning(other).waitFor({ state: 'hidden' })
  })

  it('closes the record in our app with it, where use counts too (LOGIN-20)', async () => {
    const { page, context, pass } = await enter()
    const record = await context.newPage()
    await openPatient(record, stack)
    await launch(record, stack)
    const name = record.getByRole('heading', { level: 1, name: 'Juniper, Alba' })
    await name.waitFor()
    // The script reports the use, then asks when the session ends.
    const learned = () => record.waitForResponse(response => response.url().endsWith('/api/session'))
    for (const _ of [1, 2, 3, 4, 5]) {
      await Promise.all([learned(), asked(page, () => pass(IDLE_SECONDS / 3))])
      await use(record, undefined, '/keep-alive')
    }
    assert.equal(await page.getByRole('heading', { level: 1, name: 'Patients' }).isVisible(), true)
    // What happens on the pages of the auth server counts for the record.
    for (const _ of [1, 2, 3, 4, 5]) {
      await Promise.all([learned(), asked(page, () => pass(IDLE_SECONDS / 3))])
      await use(page)
      await Promise.all([learned(), pass(21)])
    }
    assert.equal(await name.isVisible(), true)
    await pass(IDLE_SECONDS)
    await signedOut(page).waitFor()
    await record.getByRole('heading', { level: 1, name: 'Your session has ended' }).waitFor()
    assert.equal(await record.getByText('Juniper').count(), 0)
  })

  it('ends without scripts too, in the portal and in our app', async () => {
    const { page } = await open({ javaScriptEnabled: false })
    await logIn(page, stack)
    await openPatient(page, stack)
    await launch(page, stack)
    later += IDLE_SECONDS * 600
    await page.reload()
    await page.getByRole('heading', { level: 1, name: 'Juniper, Alba' }).waitFor()
    // The page of the app was a use of the sign-in.
    const record = page.url()
    later += IDLE_SECONDS * 600
    await page.goto(`${stack.settings.issuerUrl}/portal`)
    await page.getByRole('heading', { level: 1, name: 'Patients' }).waitFor()
    later += IDLE_SECONDS * 1000
    await page.goto(record)
    await page.getByRole('heading', { level: 1, name: 'Your session has ended' }).waitFor()
    await page.goto(`${stack.settings.issuerUrl}/portal`)
    await signedOut(page).waitFor()
  })
})
