/** The launch form of the portal in a browser without scripts: nothing that was chosen or typed changes by itself. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { startCdsService, type TestCdsService } from '../src/auth/testing/test-cds-service.ts'
import { expectAccessible, inspectOnEveryScreen, useBrowser } from './support/browser.ts'
import { type Stack, startStack } from './support/stack.ts'
import { logIn, openPatient } from './support/walk.ts'

let stack: Stack
let advice: TestCdsService
before(async () => {
  advice = await startCdsService()
  stack = await startStack({
    env: {
      SMART_CDS_SERVICES: JSON.stringify([
        { id: 'heart', name: 'Heart advice', url: advice.url, 'client-id': 'app-0' },
      ]),
    },
  })
  const { db } = stack.store
  const app = await db.selectFrom('client').selectAll().executeTakeFirstOrThrow()
  for (let at = 0; at < 12; at++)
    await db
      .insertInto('client')
      .values({
        ...app,
        client_id: `app-${at}`,
        name: `App ${String(at).padStart(2, '0')}`,
        launch_url: `${stack.settings.appUrl}/absent-${at}`,
      })
      .execute()
})
after(() => Promise.all([stack?.close(), advice?.close()]))
const open = useBrowser()

/** The encounters that are in view as a whole, between the patient banner and the launch button. */
async function countInView(page: Page): Promise<number> {
  return page.evaluate(() => {
    const edge = (selector: string) => document.querySelector(selector)?.getBoundingClientRect()
    const [banner, bar] = [edge('.portal__whose'), edge('.launch__bar')]
    if (!banner || !bar || bar.bottom > innerHeight) return 0
    return [...document.querySelectorAll('label.choice:has([name="encounterId"])')].filter(choice => {
      const { top, bottom, left } = choice.getBoundingClientRect()
      const isInFront = (y: number) => choice.contains(document.elementFromPoint(left + 3, y))
      return top >= banner.bottom && bottom <= bar.top && isInFront(top + 3) && isInFront(bottom - 3)
    }).length
  })
}

/** Chooses an encounter that is not the usual one, and types an intent. */
async function fillIn(page: Page): Promise<string> {
  await openPatient(page, stack)
  const others = page.locator('input[name="encounterId"]:not(:checked)')
  const chosen = (await others.first().getAttribute('value')) ?? ''
  await page.locator(`input[name="encounterId"][value="${chosen}"]`).check()
  await page.getByText('More options').click()
  await page.getByLabel('Intent').fill('order review')
  return chosen
}

async function expectKept(page: Page, encounter: string): Promise<void> {
  assert.equal(await page.locator('input[name="encounterId"]:checked').getAttribute('value'), encounter)
  assert.equal(await page.getByLabel('Intent').inputValue(), 'order review')
}

describe('the launch form, without scripts', () => {
  it('keeps encounter and options when another app is chosen, above the launch button (PORTAL-11)', async () => {
    const { page, faults } = await open({ javaScriptEnabled: false })
    await logIn(page, stack)
    const encounter = await fillIn(page)
    const summary = page.getByText('Choose another app')
    const [choice, launch] = await Promise.all([
      summary.boundingBox(),
      page.locator('.launch__after').boundingBox(),
    ])
    assert.ok(choice && launch && choice.y < launch.y)
    await summary.click()
    await page.getByRole('button', { name: /App 03/ }).click()
    await expectKept(page, encounter)
    await page.getByRole('button', { name: 'Launch App 03' }).click()
    await page.waitForURL(`${stack.settings.appUrl}/absent-3?iss=*`)
    const launched = await stack.store.db
      .selectFrom('launch_token')
      .select(['encounter_id', 'context'])
      .executeTakeFirstOrThrow()
    assert.equal(launched.encounter_id, encounter)
    assert.match(String(launched.context), /order review/)
    assert.deepEqual(
      faults.filter(fault => !/status of 404/.test(fault)),
      [],
    )
  })

  it('keeps them while another app is searched (PORTAL-11)', async () => {
    const { page } = await open({ javaScriptEnabled: false })
    await logIn(page, stack)
    const encounter = await fillIn(page)
    await page.getByText('Choose another app').click()
    await page.getByRole('button', { name: /Find another app/ }).click()
    await page.getByLabel('Find another app by name').fill('11')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: /App 11/ }).click()
    await expectKept(page, encounter)
    assert.equal(await page.getByRole('button', { name: 'Launch App 11' }).count(), 1)
  })

  it('is as it was after the same user has signed in again, with the search (LOGIN-13)', async () => {
    const { page, context } = await open({ javaScriptEnabled: false })
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/portal?search=juniper&client=app-3`)
    await page.locator('a.prow').first().click()
    const other = page.locator('input[name="encounterId"]:not(:checked)').first()
    const encounter = (await other.getAttribute('value')) ?? ''
    await other.check()
    await page.getByText('More options').click()
    await page.getByLabel('Intent').fill('order review')
    const elsewhere = await context.newPage()
    await elsewhere.goto(`${stack.settings.issuerUrl}/manage`)
    await elsewhere.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Launch App 03' }).click()
    await page.getByText('You were signed out.').waitFor()
    assert.doesNotMatch(page.url(), /juniper/)
    await page.getByLabel('Username').fill(stack.user.username)
    await page.getByLabel('Password').fill(stack.user.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'Launch App 03' }).waitFor()
    await expectKept(page, encounter)
    assert.equal(await page.getByRole('searchbox').inputValue(), 'juniper')
  })

  it('launches the app that the button names with the Enter key', async () => {
    const { page } = await open({ javaScriptEnabled: false })
    await logIn(page, stack)
    await openPatient(page, stack)
    await page.locator('input[name="encounterId"]').first().focus()
    await page.keyboard.press('Enter')
    await page.waitForURL(`${stack.settings.appUrl}/s/*`)
  })
})

describe('the launch form in a small window', () => {
  it('shows at least three encounters beside patient, cards and apps, with Launch in view (PORTAL-12)', async () => {
    advice.respond(() => ({
      cards: ['Potassium is high', 'Vaccination is due'].map(summary => ({
        summary,
        indicator: 'critical',
        source: { label: 'Guideline' },
        detail: 'Measure it again before the next dose.',
      })),
    }))
    const { page, faults } = await open({ viewport: { width: 1280, height: 720 } })
    await logIn(page, stack)
    await openPatient(page, stack)
    await page.locator('.patient__warn').waitFor()
    await page.getByRole('heading', { name: 'Vaccination is due' }).waitFor()
    assert.ok((await countInView(page)) >= 3, 'without scrolling')
    for (const [width, height] of [
      [1024, 600],
      [390, 664],
    ] as const) {
      await page.setViewportSize({ width, height })
      await page.evaluate(() => {
        const top = document
          .querySelector('.launch fieldset:has([name="encounterId"])')
          ?.getBoundingClientRect().top
        const banner = document.querySelector('.portal__whose')?.getBoundingClientRect().height
        scrollBy(0, (top ?? 0) - (banner ?? 0))
      })
      assert.ok((await countInView(page)) >= 3, `${width} x ${height}, scrolled to the encounters`)
    }
    advice.respond(() => ({ cards: [] }))
    assert.deepEqual(faults, [])
  })
})

describe('the choice of an app', () => {
  it('is accessible on every screen', async () => {
    const { page } = await open()
    await logIn(page, stack)
    await openPatient(page, stack)
    await page.getByText('Choose another app').click()
    await expectAccessible(page)
    await inspectOnEveryScreen(page, 'portal-apps')
    await page.getByRole('button', { name: /Find another app/ }).click()
    await page.getByRole('navigation', { name: 'Apps' }).waitFor()
    await inspectOnEveryScreen(page, 'portal-find-app')
  })
})
