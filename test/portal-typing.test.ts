/** The search of patients while somebody types, in a real browser. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Page, Request, Route } from 'playwright-core'
import { findRecords } from '../src/audit/index.ts'
import { expectNoViolation, inspectOnEveryScreen, useBrowser } from './support/browser.ts'
import { type Stack, startStack } from './support/stack.ts'
import { logIn } from './support/walk.ts'

let stack: Stack
before(async () => {
  stack = await startStack()
})
after(() => stack.close())
const open = useBrowser()

/** A portal whose script asks only when the test lets time pass. */
async function enter(path = '/portal') {
  const { page, faults } = await open()
  await page.clock.install()
  await logIn(page, stack)
  await page.goto(stack.settings.issuerUrl + path)
  await page.clock.pauseAt(Date.now() + 60_000)
  const asked: Request[] = []
  page.on('request', request => {
    if (new URL(request.url()).searchParams.has('search')) asked.push(request)
  })
  return { page, faults, asked, field: page.getByLabel('Find a patient by name') }
}

const found = (page: Page, text: string) =>
  page.getByRole('heading', { level: 2, name: `match “${text}”` }).waitFor()

describe('the search for a patient', () => {
  it('shows results while somebody types, from two letters, one search for a name typed without a pause (PORTAL-4)', async () => {
    const { page, faults, asked, field } = await enter()
    await field.press('J')
    await page.clock.runFor(2000)
    assert.equal(asked.length, 0)
    await field.pressSequentially('uniper')
    await page.clock.runFor(300)
    await found(page, 'Juniper')
    assert.equal(asked.length, 1)
    const ids = await page
      .locator('.plist .prow')
      .evaluateAll(rows => rows.map(row => row.getAttribute('data-patient-id')))
    assert.deepEqual(ids, ['patient-1', 'patient-2'])
    // Screen readers hear how many there are.
    assert.equal(await page.getByRole('status').first().textContent(), '2 patients match “Juniper”')
    assert.equal(new URL(page.url()).search, '?search=Juniper')
    // The field keeps the focus, and the arrow leads to the results.
    assert.equal(await field.evaluate(input => input === document.activeElement), true)
    await page.keyboard.press('ArrowDown')
    assert.match(await page.locator(':focus').innerText(), /Alba/)
    await field.fill('J')
    await page.getByRole('heading', { level: 2, name: /match/ }).waitFor({ state: 'detached' })
    await field.fill('Xyzzy')
    await page.clock.runFor(400)
    await page.getByRole('heading', { name: 'No patient matches “Xyzzy”' }).waitFor()
    assert.match((await page.getByRole('status').first().textContent()) ?? '', /^No patient matches/)
    assert.deepEqual(faults, [])
    await page.clock.resume()
    await expectNoViolation(page)
    await inspectOnEveryScreen(page, 'portal-typing')
  })

  it('asks at most three times in a second (PORTAL-4)', async () => {
    const { page, asked, field } = await enter()
    await field.fill('Ju')
    await page.clock.runFor(260)
    await found(page, 'Ju')
    await field.press('End')
    await field.press('n')
    await page.clock.runFor(300)
    assert.equal(asked.length, 1)
    await page.clock.runFor(60)
    await found(page, 'Jun')
    assert.equal(asked.length, 2)
  })

  it('never shows an older answer after a newer one', async () => {
    const { page, field } = await enter()
    const held: Route[] = []
    await page.route(/search=Fe$/, route => {
      held.push(route)
    })
    await field.fill('Fe')
    await Promise.all([page.waitForRequest(/search=Fe$/), page.clock.runFor(300)])
    await field.fill('Juniper')
    await page.clock.runFor(400)
    await found(page, 'Juniper')
    await Promise.all(held.map(route => route.continue().catch(() => {})))
    await page.clock.runFor(1000)
    await found(page, 'Juniper')
  })

  it('says that the results could not be loaded, and keeps the list', async () => {
    const { page, field } = await enter()
    await page.route(/search=Fe$/, route => route.abort())
    await field.fill('Fe')
    await page.clock.runFor(300)
    await page.getByText('The results could not be loaded. Press Search to try again.').waitFor()
    assert.equal(await page.locator('.plist .prow').count(), 5)
  })

  it('is recorded as the same search by its button, and reads no picked record again (PORTAL-4)', async () => {
    const { page, field } = await enter('/portal?patient=patient-1')
    const requests = async () => {
      await stack.audit.flush()
      const records = await findRecords(stack.store, { limit: 20, order: 'newest' })
      return records.map(({ id, request, reason }) => ({ id, what: `${request} ${reason}` }))
    }
    const [last] = await requests()
    const since = async (id: unknown) => {
      const records = await requests()
      const before = records.findIndex(record => record.id === id)
      return records.slice(0, before).map(({ what }) => what)
    }
    await field.pressSequentially('Limestone')
    await page.clock.runFor(300)
    await page.getByRole('heading', { level: 2, name: '1 patient matches “Limestone”' }).waitFor()
    assert.equal(new URL(page.url()).searchParams.get('patient'), 'patient-1')
    const typed = await since(last?.id)
    const [newest] = await requests()
    await page.goto(`${stack.settings.issuerUrl}/portal?search=Limestone`)
    const pressed = await since(newest?.id)
    assert.ok(typed.length > 0)
    assert.deepEqual(typed.toSorted(), pressed.toSorted())
  })
})
