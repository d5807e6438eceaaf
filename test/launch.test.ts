/** An EHR launch in a real browser: log in, search, select a patient, launch, and read in the demo app. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import type { Resource } from '../src/fhir/index.ts'
import { inspectOnEveryScreen, screenshot, useBrowser } from './support/browser.ts'
import { type Stack, startStack } from './support/stack.ts'
import { launch, logIn, openPatient, pickPatient, signIn } from './support/walk.ts'

/** A prescription that refers to its medicine, without a display. */
const REFERRED: readonly Resource[] = [
  { resourceType: 'Medication', id: 'med-referred', code: { text: 'Teriparatide 20 microgram injection' } },
  {
    resourceType: 'MedicationRequest',
    id: 'order-referred',
    status: 'active',
    intent: 'order',
    subject: { reference: 'Patient/patient-1' },
    authoredOn: '2026-01-05',
    medicationReference: { reference: 'Medication/med-referred' },
  },
]

let stack: Stack
before(async () => {
  stack = await startStack({ env: { SMART_SAMPLE_PATIENTS: '30' }, resources: REFERRED })
})
after(() => stack?.close())
const open = useBrowser()

/** Checks that the button is visible without scrolling, on a small laptop and on a phone, and that sample data are marked. */
async function expectLaunchInSight(page: Page): Promise<void> {
  const before = page.viewportSize()
  for (const viewport of [{ width: 1280, height: 800 }, { width: 390, height: 844 }, before]) {
    if (viewport) await page.setViewportSize(viewport)
    const box = await page.getByRole('button', { name: /^Launch (?!settings)/ }).boundingBox()
    const { height = 0 } = page.viewportSize() ?? {}
    assert.ok(await page.locator('.topbar').getByText('Sample data').isVisible())
    assert.ok(box && box.y > 0 && box.y + box.height <= height, `${JSON.stringify(box)} of ${height}`)
  }
}

describe('an EHR launch', () => {
  it('leads from the login to the record in the app, and every page is accessible (SERVICE-1, FHIR-12, PORTAL-1)', async () => {
    const { page, faults } = await open()
    await page.goto(`${stack.settings.issuerUrl}/portal`)
    assert.equal(new URL(page.url()).pathname, '/login')
    await inspectOnEveryScreen(page, 'login')

    await signIn(page, stack)
    assert.equal(new URL(page.url()).pathname, '/portal')
    assert.equal(await page.locator('[data-patient-id]').count(), 20)
    await page.getByText(/^Patients 1 to 20 of \d+, by family name\.$/).waitFor()
    await page.getByRole('link', { name: 'Next' }).click()
    await page.getByRole('link', { name: 'Previous' }).click()
    await page.getByRole('link', { name: 'Alabaster, Zoë' }).waitFor()
    await inspectOnEveryScreen(page, 'portal')

    await pickPatient(page, 'Juniper, Alba')
    await page.locator('.patient__warn').getByText('Alban').waitFor()
    await expectLaunchInSight(page)
    await inspectOnEveryScreen(page, 'portal-picked')
    await page.getByRole('link', { name: 'Show 13 earlier encounters' }).click()
    await expectLaunchInSight(page)
    await inspectOnEveryScreen(page, 'portal-earlier')

    await launch(page, stack)
    const banner = page.getByRole('region', { name: 'Patient' })
    await banner.getByRole('heading', { name: 'Juniper, Alba' }).waitFor()
    await banner.getByText('14-Mar-1958').waitFor()
    await page.locator('.topbar').getByText('Sample data').waitFor()
    for (const name of ['Conditions', 'Medicines', 'Blood pressure'])
      await page.getByRole('heading', { level: 2, name }).waitFor()
    await page
      .getByRole('group', { name: 'Session' })
      .getByText(/Session ends \d\d:\d\d/)
      .waitFor()
    await inspectOnEveryScreen(page, 'app')
    assert.deepEqual(faults, [])
  })

  it('shows the data of the session API in the app', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    await openPatient(page, stack)
    await launch(page, stack)
    const summary = await page.evaluate(async () => (await fetch('/api/summary')).json())
    assert.equal(summary.patient.name[0].family, 'Juniper')
    const rows = await page
      .getByRole('table', { name: /conditions/i })
      .getByRole('rowheader')
      .count()
    assert.equal(rows, summary.conditions.length)
    assert.deepEqual(faults, [])
  })

  it('shows the name of a medicine to which a prescription refers, with the default scopes', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    await openPatient(page, stack)
    await launch(page, stack)
    const medicines = page.getByRole('table', { name: 'Active prescriptions' })
    await medicines.getByRole('rowheader', { name: 'Teriparatide 20 microgram injection' }).waitFor()
    await screenshot(page, 'app-medicine-by-reference')
    assert.deepEqual(faults, [])
  })

  it('works without scripts (DEMO-1)', async () => {
    const { page, faults } = await open({ javaScriptEnabled: false })
    await signIn(page, stack)
    await pickPatient(page, 'Juniper, Alba')
    await launch(page, stack)
    await page.getByRole('heading', { level: 1, name: 'Juniper, Alba' }).waitFor()
    await page.getByRole('button', { name: 'End session' }).click()
    assert.equal(await page.getByRole('heading', { level: 1, name: 'Juniper, Alba' }).count(), 0)
    await page.goto(stack.settings.appUrl)
    assert.equal(await page.getByRole('heading', { level: 1, name: 'Juniper, Alba' }).count(), 0)
    assert.deepEqual(faults, [])
  })

  it('asks for the encounter if several are possible, without scripts too', async () => {
    const { page, faults } = await open({ javaScriptEnabled: false })
    await signIn(page, stack)
    await pickPatient(page, 'Alder, Maren')
    await page.getByRole('button', { name: /^Launch (?!settings)/ }).click()
    await page.getByRole('alert').getByText('Choose an encounter, or “No encounter”.').waitFor()
    // Earlier encounters come into sight by the arrow keys, and by their link: what was chosen and typed stays.
    const choices = page.locator('input[name=encounterId]')
    const heightOfEarlier = async () => (await page.locator('#earlier').boundingBox())?.height ?? 0
    await choices.nth(3).check()
    assert.equal(await heightOfEarlier(), 0)
    await choices.nth(3).press('ArrowDown')
    assert.equal(await choices.nth(4).isChecked(), true)
    assert.ok((await heightOfEarlier()) > 100)
    await choices.nth(1).check()
    await page.getByText('More options').click()
    await page.getByLabel('Intent').fill('reconcile')
    assert.equal(await heightOfEarlier(), 0)
    await page.getByRole('link', { name: 'Show 2 earlier encounters' }).click()
    assert.ok((await heightOfEarlier()) > 100)
    assert.equal(await page.getByText(/earlier encounter/).isVisible(), false)
    assert.equal(await choices.nth(1).isChecked(), true)
    assert.equal(await page.getByLabel('Intent').inputValue(), 'reconcile')
    await choices.last().check()
    await page.getByRole('button', { name: /^Launch (?!settings)/ }).click()
    await page.waitForURL(`${stack.settings.appUrl}/s/*`)
    // The browser reports the status of the form at fault, and nothing else.
    assert.match(faults.join('\n'), /^Failed to load resource: .* status of 400 .*\/portal\/launch\)$/)
  })

  it('shows an accessible form again if no encounter was chosen', async () => {
    const { page } = await open()
    await signIn(page, stack)
    await pickPatient(page, 'Alder, Maren')
    await page.getByRole('button', { name: /^Launch (?!settings)/ }).click()
    await page.getByRole('alert').getByText('Choose an encounter, or “No encounter”.').waitFor()
    await inspectOnEveryScreen(page, 'portal-fault')
  })

  it('logs no token, code or name (HTTP-7)', async () => {
    const log = stack.log()
    assert.ok(log.includes('/callback'))
    assert.doesNotMatch(log, /eyJ[\w-]+\.|Juniper|launch=|code=|state=|sallyport"/)
  })
})
