/** The pages of patients and relatives in a real browser, after real requests of clinicians and apps. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { seedSampleAccounts } from '../src/auth/index.ts'
import { inspectOnEveryScreen, screenshot, useBrowser } from './support/browser.ts'
import { type Stack, startStack } from './support/stack.ts'
import { startThirdPartyApp, type ThirdPartyApp } from './support/third-party-app.ts'
import { logIn, openPatient } from './support/walk.ts'

let stack: Stack
let diary: ThirdPartyApp
before(async () => {
  // Zoë Alabaster, whose mother has a sample account, is the 27th.
  const contact = 'Privacy office, 555 0101, privacy@hospital.example'
  stack = await startStack({
    env: { SMART_SAMPLE_PATIENTS: '27', SMART_BRAND_PATIENT_CONTACT: contact },
    resources: ['patient-5', 'patient-8'].map(id => ({
      resourceType: 'RelatedPerson',
      id: `carer-of-${id}`,
      patient: { reference: `Patient/${id}` },
    })),
  })
  await seedSampleAccounts(stack.store)
  diary = await startThirdPartyApp(stack, 'Diary', app => {
    app.get('/callback', (_request, response) => {
      response.type('html').send('<!doctype html><title>App</title><h1>Opened</h1>')
    })
  })
  const { db } = stack.store
  const stated = { website_url: 'https://diary.example/', policy_url: 'https://diary.example/privacy' }
  await db
    .updateTable('client')
    .set({ scope: SCOPE, ...stated })
    .where('client_id', '=', 'diary')
    .execute()
  // Alba Juniper also acts for Zoë Alabaster.
  const alba = db.selectFrom('clinician').select('id').where('username', '=', 'alba')
  const { id } = await alba.executeTakeFirstOrThrow()
  const account = await db
    .selectFrom('clinician')
    .select('password_hash')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const addRelative = async (username: string, display_name: string, relatedPersons: readonly string[]) => {
    const names = { username, display_name, fhir_user_id: 'Patient/patient-1' }
    const { id: clinician_id } = await db
      .insertInto('clinician')
      .values({ ...names, ...account, for_loopback: true })
      .returning('id')
      .executeTakeFirstOrThrow()
    const related = relatedPersons.map(related_person_id => ({ clinician_id, related_person_id }))
    await db.insertInto('account_related_person').values(related).execute()
  }
  await addRelative('parent', 'Alba Juniper', ['mother-27'])
  await addRelative('carer', 'Cary Juniper', ['carer-of-patient-5', 'carer-of-patient-8'])
})
after(async () => {
  await diary?.close()
  await stack?.close()
})
const open = useBrowser()

const SCOPE = 'launch/patient offline_access patient/*.cruds'
const VERIFIER = 'v'.repeat(43)

function buildAuthorizeUrl(): string {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: 'diary',
    redirect_uri: `${diary.url}/callback`,
    scope: SCOPE,
    state: 'state',
    aud: stack.settings.fhirBaseUrl,
    code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
    code_challenge_method: 'S256',
  })
  return `${stack.settings.issuerUrl}/oauth2/authorize?${query}`
}

/** The app gets its tokens, as the browser has brought it the code. */
async function exchangeCode(page: Page): Promise<void> {
  await page.getByRole('heading', { name: 'Opened' }).waitFor()
  const response = await fetch(`${stack.settings.issuerUrl}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: 'diary',
      redirect_uri: `${diary.url}/callback`,
      code: new URL(page.url()).searchParams.get('code') ?? '',
      code_verifier: VERIFIER,
    }),
  })
  assert.equal(response.status, 200)
}

async function signIn(page: Page, username: string): Promise<void> {
  await page.goto(`${stack.settings.issuerUrl}/login`)
  await page.getByLabel('Username').fill(username)
  await page.getByLabel('Password').fill(stack.user.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

describe('the sign-in page', () => {
  it('shows the password on demand until it is sent, by keyboard, and says what to do if it is forgotten (LOGIN-14)', async () => {
    const { page, faults } = await open()
    await page.goto(`${stack.settings.issuerUrl}/login`)
    await page.getByText('Forgot your password, or can’t sign in? Ask the people').waitFor()
    const field = page.getByLabel('Password')
    await field.fill('wrong')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Hide password' }).waitFor()
    assert.equal(await field.getAttribute('type'), 'text')
    assert.equal(await field.evaluate(it => it === document.activeElement), true)
    await inspectOnEveryScreen(page, 'login-shown')
    await page.getByRole('button', { name: 'Hide password' }).click()
    assert.equal(await field.getAttribute('type'), 'password')
    await page.getByRole('button', { name: 'Show password' }).click()
    await page.getByLabel('Username').fill('alba')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('The username or password is incorrect.').waitFor()
    await page.getByRole('link', { name: 'Forgot your password?' }).waitFor()
    await inspectOnEveryScreen(page, 'login-wrong')
    assert.equal(await page.getByLabel('Password').getAttribute('type'), 'password')
    assert.deepEqual(
      faults.filter(fault => !/status of 401/.test(fault)),
      [],
    )
  })

  it('hides the password again before the form is sent', async () => {
    const { page } = await open()
    await page.goto(`${stack.settings.issuerUrl}/login`)
    await page.getByLabel('Username').fill('alba')
    await page.getByLabel('Password').fill('wrong')
    await page.getByRole('button', { name: 'Show password' }).click()
    const type = await page.evaluate(() => {
      const form = document.querySelector('form')
      form?.addEventListener('submit', event => event.preventDefault())
      form?.requestSubmit()
      return document.querySelector<HTMLInputElement>('#password')?.type
    })
    assert.equal(type, 'password')
  })

  it('has no button that shows the password without scripts', async () => {
    const { page } = await open({ javaScriptEnabled: false })
    await page.goto(`${stack.settings.issuerUrl}/login`)
    await page.getByLabel('Password').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Show password' }).count(), 0)
  })
})

describe('the pages of a patient', () => {
  it('say after the sign-in whose record it is, which apps have access, who looked, and whom to ask (PATIENTS-8)', async () => {
    const { page, faults } = await open()
    await signIn(page, 'alba')
    await page.waitForURL('**/home')
    await page.getByRole('heading', { name: 'Alba Juniper' }).waitFor()
    await page.getByText('Your own record').waitFor()
    // In the menu of a phone the links are above the name, as in the order of the keyboard.
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByRole('button', { name: 'Menu' }).click()
    const [link, name] = await Promise.all([
      page.getByRole('link', { name: 'Account', exact: true }).boundingBox(),
      page.locator('.who').boundingBox(),
    ])
    assert.ok(link && name && link.y < name.y, 'the name is at the end of the menu')
    await screenshot(page, 'menu.narrow-light')
    await page.keyboard.press('Escape')
    await page.setViewportSize({ width: 1280, height: 900 })
    await page.getByText('Nobody else has opened your record lately.').waitFor()
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
    await visit.getByText(/^With Demo app: looked at your .*prescriptions/).waitFor()
    await visit.getByText(/^With the patient list: looked at your/).waitFor()
    await page.locator('summary', { hasText: 'Appeared in a list' }).click()
    await page.getByText(/In a list of patients/).waitFor()
    await inspectOnEveryScreen(page, 'access-log')

    await page.getByText('Filter the entries').click()
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
    assert.match((await download).suggestedFilename(), /^who-looked-.*-[0-9a-f]{6}\.csv$/)
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

  it('say who else may act for a child (PATIENTS-11)', async () => {
    const { page } = await open()
    await signIn(page, 'parent')
    await page.getByRole('heading', { name: 'Who else may act for Zoë Alabaster' }).waitFor()
    const card = page.getByRole('region', { name: 'Zoë Alabaster' })
    await card
      .getByRole('listitem')
      .filter({ hasText: /^Mira .*, mother$/i })
      .waitFor()
    await inspectOnEveryScreen(page, 'home-representatives')
  })

  it('lead those who act for several people to the parts of the page, and say for whom they no longer act (PATIENTS-8)', async () => {
    const { page, faults } = await open()
    await signIn(page, 'carer')
    const contents = page.getByRole('navigation', { name: 'On this page' })
    await contents.getByRole('link', { name: 'Apps with access' }).press('Enter')
    await page.waitForURL('**/home#s-apps')
    assert.equal(await page.getByText(/If somebody should not be able to open a record/).count(), 1)
    await inspectOnEveryScreen(page, 'home-carer')

    await page.goto(buildAuthorizeUrl())
    await page.getByRole('radio').nth(1).press('Space')
    await page.getByRole('button', { name: 'Continue' }).press('Enter')
    await page.getByRole('button', { name: 'Allow access' }).click()
    await exchangeCode(page)
    await page.goto(`${stack.settings.issuerUrl}/manage`)
    await page.getByRole('link', { name: 'End access of Diary' }).click()
    await page.getByText(/it then asks you again\. Data that it has copied stays there/).waitFor()
    await inspectOnEveryScreen(page, 'end-access')
    await page.getByRole('button', { name: 'End access' }).click()
    await page.getByText('Access ended.').waitFor()
    const { db } = stack.store
    const carer = db.selectFrom('clinician').select('id').where('username', '=', 'carer')
    await db.deleteFrom('account_related_person').where('clinician_id', '=', carer).execute()
    await signIn(page, 'carer')
    await page.waitForURL('**/home')
    await page.goto(`${stack.settings.issuerUrl}/manage`)
    await page.getByText('You no longer act for this person').waitFor()
    await inspectOnEveryScreen(page, 'manage-former')
    assert.deepEqual(faults, [])
  })

  it('open an app for the record from the start page (PATIENTS-10)', async () => {
    const { page, faults } = await open()
    await signIn(page, 'alba')
    await page.getByRole('link', { name: 'Open Demo app' }).press('Enter')
    await page.getByRole('heading', { level: 1, name: /Juniper, Alba/ }).waitFor()
    await page.goto(`${stack.settings.issuerUrl}/home`)
    await page.getByRole('link', { name: 'End access of Demo app' }).waitFor()
    assert.deepEqual(faults, [])
  })

  it('have days and times in the zone of the reader, and name it (PATIENTS-6)', async () => {
    const { page, faults } = await open({ timezoneId: 'Pacific/Auckland' })
    await signIn(page, 'mira')
    await page.waitForURL('**/home')
    const when = await page.locator('.visit__when').first().textContent()
    assert.match(when ?? '', /\d\d:\d\d NZ[DS]T$/)
    await page.getByRole('link', { name: 'Who looked', exact: true }).click()
    await page.getByText('Days and times are in the zone Pacific/Auckland.').waitFor()
    const day = await page.locator('.day h2').first().textContent()
    assert.match(day ?? '', new RegExp(`^Today, ${when?.slice(0, 11)}$`))
    assert.deepEqual(faults, [])
  })

  it('show the state of the account, and lead to each page (ACCOUNT-5)', async () => {
    const { page, faults } = await open()
    await signIn(page, 'alba')
    await page.getByRole('link', { name: 'Account', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Account' }).waitFor()
    await inspectOnEveryScreen(page, 'account')
    for (const [name, heading] of [
      ['Password', 'Change password'],
      ['Two-step sign-in', 'Two-step sign-in'],
      ['Passkeys', 'Add a second step'],
      ['Where you are signed in', 'Where you are signed in'],
      ['Apps with access', 'Apps with access'],
      ['Who looked', 'Who looked at my record'],
    ] as const) {
      await page.getByRole('main').getByRole('link', { name, exact: true }).press('Enter')
      await page.getByRole('heading', { level: 1, name: heading }).waitFor()
      await page.goto(`${stack.settings.issuerUrl}/account`)
    }
    await page.goto(`${stack.settings.issuerUrl}/account/sign-ins`)
    await inspectOnEveryScreen(page, 'sign-ins')
    assert.deepEqual(faults, [])
  })

  it('let a parent choose the child, and end the access of an app to that record alone (PATIENTS-9, REVOKE-3)', async () => {
    const { page, faults } = await open()
    await signIn(page, 'parent')
    await page.waitForURL('**/home')
    await page.goto(buildAuthorizeUrl())
    await page.getByRole('heading', { level: 1, name: 'Whose record should Diary use?' }).waitFor()
    assert.equal(await page.getByRole('radio').count(), 2)
    await page.getByRole('radio', { name: /^Alba Juniper\s+You/ }).waitFor()
    await page.getByRole('radio', { name: /^Zoë Alabaster\s+Your child/ }).press('Space')
    await inspectOnEveryScreen(page, 'picker-parent')
    await page.getByRole('button', { name: 'Continue' }).press('Enter')

    await page.getByRole('heading', { name: 'Allow Diary to use the record of Zoë Alabaster?' }).waitFor()
    // The wrong person: back to the choice of the same request.
    await page.getByRole('link', { name: 'Choose another person' }).press('Enter')
    await page.getByRole('radio', { name: /^Alba Juniper/ }).check()
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'Allow Diary to use your record?' }).waitFor()
    await page.getByRole('link', { name: 'Choose another person' }).click()
    await page.getByRole('radio', { name: /^Zoë Alabaster/ }).check()
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'Allow Diary to use the record of Zoë Alabaster?' }).waitFor()
    const decision = page.getByRole('region', { name: 'Your decision' })
    const writes = decision.getByText('The app may add, change or delete entries.')
    const stays = decision.getByText('It keeps access while you are away.')
    assert.deepEqual([await writes.isVisible(), await stays.isVisible()], [false, false])
    const about = page.getByRole('complementary', { name: 'About the app' })
    await about.getByText('The hospital or practice registered or approved it.').waitFor()
    assert.deepEqual(
      await about
        .getByRole('link', { name: /^diary\.example ?, in a new tab$/ })
        .evaluateAll(links => links.map(link => link.getAttribute('href'))),
      ['https://diary.example/', 'https://diary.example/privacy'],
    )
    await inspectOnEveryScreen(page, 'consent-unticked')
    const row = page.locator('.writes')
    await row.getByRole('checkbox').first().press('Space')
    await page.getByRole('checkbox', { name: /^Keep access/ }).press('Space')
    assert.deepEqual([await writes.isVisible(), await stays.isVisible()], [true, true])
    await row.getByText('Choose which kinds of data').click()
    const parts = row.locator('.scope__parts input')
    for (const part of await parts.all()) await part.uncheck()
    assert.match(await row.innerText(), /Left out/)
    assert.equal(await writes.isVisible(), false)
    await inspectOnEveryScreen(page, 'consent-parent')
    await parts.first().check()
    assert.equal(await writes.isVisible(), true)
    await page.getByRole('button', { name: 'Allow access' }).click()
    await exchangeCode(page)
    await page.goto(buildAuthorizeUrl())
    await page.getByRole('radio', { name: /^Alba Juniper/ }).check()
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('button', { name: 'Allow access' }).click()
    await exchangeCode(page)

    await page.goto(`${stack.settings.issuerUrl}/home`)
    await inspectOnEveryScreen(page, 'home-parent')
    await page.getByRole('link', { name: 'Who looked', exact: true }).click()
    await inspectOnEveryScreen(page, 'access-log-parent')
    await page.goto(`${stack.settings.issuerUrl}/manage`)
    await inspectOnEveryScreen(page, 'manage-parent')
    await page.getByRole('link', { name: /^End for this record of Zoë Alabaster/ }).click()
    await page
      .getByRole('heading', { level: 1, name: 'End Diary’s access to the record of Zoë Alabaster?' })
      .waitFor()
    await inspectOnEveryScreen(page, 'manage-remove-parent')
    await page.getByRole('button', { name: 'End access' }).press('Enter')
    await page.getByText('Diary can no longer use the record of Zoë Alabaster on your behalf.').waitFor()
    assert.equal(await page.getByRole('link', { name: /^End for this record/ }).count(), 0)
    const ended = page.getByRole('table', { name: /^Access that has ended/ })
    await ended.getByRole('row', { name: /^Diary Zoë Alabaster .* You ended it$/ }).waitFor()
    await inspectOnEveryScreen(page, 'manage-ended')
    assert.deepEqual(faults, [])
  })

  it('return to the page that a tab wanted after a sign-out in another one (LOGIN-13)', async () => {
    const { page, context } = await open()
    await signIn(page, 'alba')
    await page.waitForURL('**/home')
    const other = await context.newPage()
    await other.goto(`${stack.settings.issuerUrl}/home`)
    await other.getByRole('button', { name: 'Sign out' }).click()
    await other.getByText('You are signed out.').waitFor()
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
    assert.equal(await page.getByText('Juniper').count(), 0)
    await page.goto(`${stack.settings.issuerUrl}/account/password`)
    await page.getByText('Sign in to continue to the page you wanted.').waitFor()
    await inspectOnEveryScreen(page, 'login-again')
    await page.getByLabel('Username').fill('alba')
    await page.getByLabel('Password').fill(stack.user.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { level: 1, name: 'Change password' }).waitFor()
    assert.equal(await page.getByRole('button', { name: /^Show / }).count(), 3)
    await inspectOnEveryScreen(page, 'password')
    await page.goto(`${stack.settings.issuerUrl}/account/factors`)
    await inspectOnEveryScreen(page, 'two-step')
    await page.goto(`${stack.settings.issuerUrl}/account/access-log?since=2026-11-13&until=2026-11-12`)
    await page.getByText('This day is before “From”. Choose a later one.').waitFor()
    await inspectOnEveryScreen(page, 'access-log-fault')
  })
})
