import type { Page } from 'playwright-core'
import type { Stack } from './stack.ts'

/** Opens the portal and signs in. */
export async function signIn(page: Page, { settings, user }: Stack): Promise<void> {
  await page.goto(`${settings.issuerUrl}/portal`)
  await page.getByLabel('Username').fill(user.username)
  await page.getByLabel('Password').fill(user.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { level: 1, name: 'Patients' }).waitFor()
}

/** Signs in by a request: for tests of other pages than the login. */
export async function logIn(page: Page, { settings, user }: Stack): Promise<void> {
  const { username, password } = user
  const url = `${settings.issuerUrl}/login`
  await page.request.post(url, { form: { username, password }, maxRedirects: 0 })
}

/** Opens the portal with a selected patient. */
export async function openPatient(page: Page, { settings }: Stack, id = 'patient-1'): Promise<void> {
  await page.goto(`${settings.issuerUrl}/portal?patient=${id}`)
  await page.getByRole('group', { name: 'Encounter' }).waitFor()
}

/** Follows a link of the developers' menu in the top bar. */
export async function openDeveloperPage(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'Developer' }).click()
  await page.getByRole('navigation').getByRole('link', { name, exact: true }).click()
}

/** Searches by name and picks the one row that has the whole of it (`Juniper, Alba`). */
export async function pickPatient(page: Page, name: string): Promise<void> {
  const [family = name] = name.split(',')
  await page.getByLabel('Find a patient by name').fill(family)
  await page.getByRole('button', { name: 'Search' }).click()
  await page
    .locator('a.prow')
    .filter({ has: page.getByText(new RegExp(`^${name}(\\s|$)`)) })
    .click()
  await page.getByRole('group', { name: 'Encounter' }).waitFor()
}

/** Launches without an encounter, and waits for the app. */
export async function launch(page: Page, { settings }: Stack): Promise<void> {
  await page.getByLabel('No encounter').check()
  await page.getByRole('button', { name: /^Launch (?!settings)/ }).click()
  await page.waitForURL(`${settings.appUrl}/s/*`)
}
