/** The pages for app developers in a real browser: the lab, the registered apps with their code, the activity. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { seedSampleAccounts } from '../src/auth/index.ts'
import { inspectOnEveryScreen, useBrowser, type WatchedPage } from './support/browser.ts'
import { type Stack, startStack } from './support/stack.ts'
import { logIn } from './support/walk.ts'

let stack: Stack
before(async () => {
  stack = await startStack()
  await seedSampleAccounts(stack.store)
})
after(() => stack?.close())
const open = useBrowser()

async function enter(options?: Parameters<typeof open>[0]): Promise<WatchedPage> {
  const watched = await open(options)
  await logIn(watched.page, stack)
  return watched
}

const visit = (page: Page, path: string) => page.goto(`${stack.settings.issuerUrl}${path}`)

describe('/lab', () => {
  const readLink = async (page: Page) =>
    new URL((await page.getByRole('link', { name: 'Launch', exact: true }).getAttribute('href')) ?? '')

  it('picks app, user, patient and encounter by name, and the link follows the form (LAB-7)', async () => {
    const { page, faults } = await enter({ permissions: ['clipboard-read', 'clipboard-write'] })
    await visit(page, '/lab')
    await page.getByText('Choose a patient. The link appears here').waitFor()
    const patient = page.getByRole('combobox', { name: 'Patient' })
    await patient.fill('junip')
    await page.getByRole('option', { name: /Juniper, Alba / }).waitFor()
    await patient.press('Enter')
    await page.getByText('Opens Demo app for Juniper, Alba').waitFor()
    assert.equal((await readLink(page)).searchParams.get('patient'), 'patient-1')
    await page.getByRole('combobox', { name: 'Encounter' }).selectOption({ index: 1 })
    const user = page.getByRole('combobox', { name: 'User' })
    await user.fill('quill')
    await page.getByRole('option', { name: /Priya Quill/ }).click()
    await page.getByText('as Dr. Priya Quill').waitFor()
    await page.getByText('Skip login', { exact: true }).check()
    await page.getByText('FHIR requests', { exact: true }).click()
    await page.getByText('fhir:429', { exact: true }).check()
    await page.getByText('Scopes of the app', { exact: true }).click()
    await page.getByText('patient/Patient.rs', { exact: true }).first().check()
    await page.getByText('Simulates fhir:429').waitFor()
    await page.waitForURL(/scope=patient/)
    const { searchParams } = await readLink(page)
    assert.deepEqual(
      ['patient', 'user', 'skip_login', 'simulate'].map(name => searchParams.get(name)),
      ['patient-1', 'admin', '1', 'fhir:429'],
    )
    assert.match(searchParams.get('encounter') ?? '', /./)
    assert.match(searchParams.get('scope') ?? '', /^patient\/Patient\.rs$/)
    await page.getByRole('button', { name: 'Copy' }).first().click()
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), (await readLink(page)).href)
    await inspectOnEveryScreen(page, 'lab')
    await page.goto((await readLink(page)).href)
    await page.waitForURL(`${stack.settings.appUrl}/**`)
    assert.deepEqual(
      faults.filter(fault => !/status of 502/.test(fault)),
      [],
    )
  })

  it('explains every kind of launch, and launches each (LAB-7)', async () => {
    const { page, faults } = await enter()
    await visit(page, '/lab')
    await page.getByText('Standalone launch', { exact: true }).check()
    await page.getByText('Opens Demo app without a context').waitFor()
    assert.equal(await page.getByRole('combobox', { name: 'Patient' }).isVisible(), false)
    const alone = await readLink(page)
    assert.equal(alone.search, '?kind=standalone')
    await inspectOnEveryScreen(page, 'lab-standalone')
    await page.getByText('EHR launch by a patient', { exact: true }).check()
    const user = page.getByRole('combobox', { name: 'User' })
    await user.fill('alba')
    await page.getByRole('option', { name: /Alba Juniper.*patient/ }).click()
    await page.getByText('for the own record as Alba Juniper').waitFor()
    await page.getByText('Skip login', { exact: true }).check()
    await page.getByText('Skip consent', { exact: true }).check()
    await page.waitForURL(/skip_consent/)
    await page.getByText('without consent').waitFor()
    const own = await readLink(page)
    await page.getByText('Backend service', { exact: true }).check()
    await page.getByText('Choose an app with keys and system/ scopes').waitFor()
    await page.goto(alone.href)
    await page.getByRole('heading', { name: /patient/i, level: 1 }).waitFor()
    await page.goto(own.href)
    await page.waitForURL(`${stack.settings.appUrl}/s/*`)
    await page.getByText('Juniper').first().waitFor()
    assert.deepEqual(faults, [])
  })

  it('works without scripts: a name finds the patient, and a button makes the link (LAB-7)', async () => {
    const { page } = await enter({ javaScriptEnabled: false })
    await visit(page, '/lab')
    await page.getByLabel('Patient', { exact: true }).fill('juniper')
    await page.getByText('Skip login', { exact: true }).check()
    await page.getByRole('button', { name: 'Create link' }).click()
    const link = (await page.getByText('several patients match').isVisible())
      ? page.locator('.lab__result .choice').first()
      : undefined
    await link?.click()
    const { searchParams } = await readLink(page)
    assert.equal(searchParams.get('patient'), 'patient-1')
    assert.equal(searchParams.get('skip_login'), '1')
  })

  it('takes over what was chosen in the portal, also the encounter (LAB-7)', async () => {
    const { page, faults } = await enter()
    await visit(page, '/portal?patient=patient-1')
    const encounter = page.getByRole('group', { name: 'Encounter' }).getByRole('radio').first()
    await encounter.check()
    const id = await encounter.getAttribute('value')
    await page.getByText('More options').click()
    await page.getByLabel('Intent').fill('reconcile')
    await page.getByRole('button', { name: 'Launch settings for developers' }).click()
    await page.waitForURL(/\/lab\?/)
    const { searchParams } = await readLink(page)
    assert.deepEqual(
      ['patient', 'encounter', 'intent'].map(name => searchParams.get(name)),
      ['patient-1', id, 'reconcile'],
    )
    assert.deepEqual(faults, [])
  })
})

describe('/activity', () => {
  it('shows times in the zone of the reader and names it, also in events that arrive later (ACTIVITY-8)', async () => {
    const refuse = (query: string) => fetch(`${stack.settings.issuerUrl}/oauth2/authorize?${query}`)
    await refuse('client_id=nobody')
    const { page, faults } = await enter({ timezoneId: 'Asia/Kolkata' })
    await visit(page, '/activity')
    await page.getByText('Times are in the zone Asia/Calcutta').waitFor()
    const times = page.locator('.event__time time')
    await refuse('client_id=sallyport-app')
    await page.waitForFunction(() => document.querySelectorAll('.event__time time').length > 1)
    const later = times.first()
    const at = new Date((await later.getAttribute('datetime')) ?? '')
    const here = new Date(at.getTime() + 5.5 * 3_600_000).toISOString().slice(11, -1)
    await later.getByText(here).waitFor()
    await inspectOnEveryScreen(page, 'activity')
    assert.deepEqual(faults, [])
  })

  it('names UTC without scripts (ACTIVITY-8)', async () => {
    const { page } = await enter({ timezoneId: 'Asia/Kolkata', javaScriptEnabled: false })
    await visit(page, '/activity')
    await page.getByText('Times are in the zone UTC').waitFor()
    const time = page.locator('.event__time time').first()
    assert.equal(await time.textContent(), (await time.getAttribute('datetime'))?.slice(11, -1))
  })
})
