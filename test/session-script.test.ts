/** The script of the demo app's page, in a real browser: countdown, warning, Keep working, end, two launches. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { expectAccessible, useBrowser, type WatchedPage } from './support/browser.ts'
import { type Stack, startStack } from './support/stack.ts'
import { launch, pickPatient, signIn } from './support/walk.ts'

let stack: Stack
before(async () => {
  stack = await startStack()
})
after(() => stack.close())
const open = useBrowser()

let signedIn: Promise<WatchedPage> | undefined

/** One browser that is signed in to the portal, and in it a page with the record. */
async function enter(patient = 'Juniper, Alba'): Promise<WatchedPage> {
  signedIn ??= open().then(async watched => {
    await signIn(watched.page, stack)
    return watched
  })
  const { context, faults } = await signedIn
  const page = await context.newPage()
  await page.goto(`${stack.settings.issuerUrl}/portal`)
  await pickPatient(page, patient)
  await launch(page, stack)
  return { context, faults, page }
}

/** As if somebody came back to the tab: the script asks at once. */
async function comeBack(page: Page): Promise<void> {
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
}

async function change(columns: { idle_expires_at?: number; max_expires_at?: number }): Promise<void> {
  await stack.store.db.updateTable('app_session').set(columns).execute()
}

describe('session.js', () => {
  it('warns before the idle time ends, and Keep working puts the end off', async () => {
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
    assert.deepEqual(faults, [])
  })

  it('says so when the end cannot be put off', async () => {
    const { page } = await enter()
    await change({ max_expires_at: Date.now() + 170_000 })
    await page.reload()
    await page.getByText('Your session ends soon, and cannot be made longer.').waitFor()
    assert.equal(await page.getByRole('link', { name: 'Keep working' }).isVisible(), false)
  })

  it('closes the record when the session is over', async () => {
    const { page } = await enter()
    await stack.store.db.deleteFrom('app_session').execute()
    await comeBack(page)
    await page.getByRole('heading', { level: 1, name: 'Your session is over' }).waitFor()
    assert.equal(await page.getByText('Juniper').count(), 0)
  })

  it('closes the older of two launches in one browser, and shows no other patient in its place', async () => {
    const { page } = await enter()
    await enter('Juniper, Alban')
    await comeBack(page)
    await page.getByRole('heading', { level: 1, name: 'This page is closed' }).waitFor()
    assert.equal(await page.getByText('Juniper').count(), 0)
    await expectAccessible(page)
    await page.getByRole('link', { name: 'Show the patient who is open now' }).click()
    await page.getByRole('heading', { level: 1, name: 'Juniper, Alban' }).waitFor()
  })
})
