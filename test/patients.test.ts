/** The pages of patients and relatives in a real browser, after real requests of clinicians and apps. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { seedSampleAccounts } from '../src/auth/index.ts'
import { inspectOnEveryScreen, useBrowser } from './support/browser.ts'
import { type Stack, startStack } from './support/stack.ts'
import { logIn, openPatient } from './support/walk.ts'

let stack: Stack
before(async () => {
  // Zoë Alabaster, whose mother has a sample account, is the 27th.
  const contact = 'Privacy office, 555 0101, privacy@hospital.example'
  stack = await startStack({
    env: { SMART_SAMPLE_PATIENTS: '27', SMART_BRAND_PATIENT_CONTACT: contact },
  })
  await seedSampleAccounts(stack.store)
})
after(() => stack?.close())
const open = useBrowser()

async function signIn(page: Page, username: string): Promise<void> {
  await page.goto(`${stack.settings.issuerUrl}/login`)
  await page.getByLabel('Username').fill(username)
  await page.getByLabel('Password').fill(stack.user.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

describe('the pages of a patient', () => {
  it('say after the sign-in whose record it is, which apps have access, who looked, and whom to ask (PATIENTS-8)', async () => {
    const { page, faults } = await open()
    await signIn(page, 'alba')
    await page.waitForURL('**/home')
    await page.getByRole('heading', { name: 'Alba Juniper' }).waitFor()
    await page.getByText('Your own record').waitFor()
    await page.getByText('Nobody has opened your record lately.').waitFor()
    await page.getByRole('link', { name: 'privacy@hospital.example' }).waitFor()
    // The letters of the logo must not have the colour of the bar.
    const findColour = (selector: string, property: 'color' | 'backgroundColor') =>
      page
        .locator(selector)
        .first()
        .evaluate((it, name) => getComputedStyle(it)[name], property)
    assert.notEqual(
      await findColour('.topbar .door', 'color'),
      await findColour('.topbar', 'backgroundColor'),
    )
    await inspectOnEveryScreen(page, 'home-new')
    assert.deepEqual(faults, [])
  })

  it('tell opening the record from appearing in a list, by person, in words (PATIENTS-6)', async () => {
    const clinician = await open()
    await logIn(clinician.page, stack)
    await openPatient(clinician.page, stack)
    await clinician.page.getByRole('button', { name: /^Launch (?!settings)/ }).click()
    await clinician.page.getByRole('heading', { level: 1, name: /Juniper, Alba/ }).waitFor()
    await clinician.page.goto(`${stack.settings.issuerUrl}/portal?search=Juniper`)

    const { page, faults } = await open()
    await signIn(page, 'alba')
    await page.getByRole('link', { name: 'Everyone who looked at your record' }).click()
    await page.getByRole('heading', { level: 1, name: 'Who looked at my record' }).waitFor()
    const visit = page.getByRole('listitem').filter({ hasText: 'Dr. Robin Ahmadi' }).first()
    await visit.getByText('Cardiologist, Outpatient clinics').waitFor()
    await visit.getByText(/Looked at your .*prescriptions/).waitFor()
    await visit.getByText(/With .*Demo app/).waitFor()
    await page.locator('summary', { hasText: 'Appeared in a list' }).click()
    await page.getByText(/In a list of patients/).waitFor()
    await inspectOnEveryScreen(page, 'access-log')

    await page.getByLabel('Kind').selectOption('Appeared in a list')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByText(/In a list of patients/).waitFor()
    assert.equal(await page.getByText(/Looked at your/).count(), 0)
    await page.getByLabel('Kind').selectOption('Changed the record')
    await page.getByRole('button', { name: 'Show', exact: true }).press('Enter')
    await page.getByRole('heading', { name: 'Nothing found.' }).waitFor()
    await page.getByRole('link', { name: 'Show all' }).click()
    const download = page.waitForEvent('download')
    await page.getByRole('link', { name: 'table (CSV)' }).click()
    assert.equal((await download).suggestedFilename(), 'who-looked.csv')
    assert.deepEqual(faults, [])
  })

  it('name the child to the mother (PATIENTS-8)', async () => {
    const clinician = await open()
    await logIn(clinician.page, stack)
    await openPatient(clinician.page, stack, 'patient-27')
    const { page, faults } = await open()
    await signIn(page, 'mira')
    await page.getByText('Your child', { exact: true }).waitFor()
    await page.getByText(/Looked at Zoë Alabaster’s/).waitFor()
    await inspectOnEveryScreen(page, 'home-mother')
    assert.deepEqual(faults, [])
  })
})
