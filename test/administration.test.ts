/** What a security officer does in a real browser: who has access now, one sign-in, and a check of an exported file. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { findRecords } from '../src/audit/index.ts'
import { inspectOnEveryScreen, screenshot, useBrowser } from './support/browser.ts'
import { HttpUser } from './support/http-user.ts'
import { type Stack, startStack } from './support/stack.ts'
import { logIn } from './support/walk.ts'

let stack: Stack
before(async () => {
  stack = await startStack({ env: { SMART_SAMPLE_PATIENTS: '27', SMART_TRUST_PROXY: 'loopback' } })
  await stack.store.db.updateTable('clinician').set({ admin: true }).execute()
  const user = new HttpUser(stack)
  await user.signIn()
  for (const patient of ['patient-1', 'patient-2']) await user.launch(patient)
})
after(() => stack?.close())
const open = useBrowser()

const CHOSEN = 'correct horse battery'

describe('the administration in a browser', () => {
  it('shows who has access now, filters by keyboard, and names what a revocation ends (REVOKE-3)', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/admin/access`)
    await page.getByRole('link', { name: 'Access', exact: true }).waitFor()
    assert.equal(await page.getByRole('link', { name: /^Revoke/ }).count(), 2)
    await page.getByRole('cell', { name: /^Juniper, .*patient-1/ }).waitFor()
    await inspectOnEveryScreen(page, 'admin-access')
    await page.getByLabel('Patient (name, MRN or id)').focus()
    await page.keyboard.type('patient-1')
    await page.keyboard.press('Enter')
    await page.getByText('access to every patient whom a user may see').waitFor()
    assert.equal(await page.getByRole('link', { name: /^Revoke/ }).count(), 1)
    await inspectOnEveryScreen(page, 'admin-access-patient')
    await page.getByRole('link', { name: /^Revoke/ }).click()
    await page.getByRole('heading', { name: 'Revoke this access?' }).waitFor()
    await inspectOnEveryScreen(page, 'admin-access-revoke')
    await page.getByRole('button', { name: 'Revoke access' }).click()
    await page.getByText('The access is revoked').waitFor()
    assert.match(page.url(), /\/admin\/access\?.*patient=patient-1/)
    await inspectOnEveryScreen(page, 'admin-access-revoked')
    await page.goto(`${stack.settings.issuerUrl}/admin/apps/sallyport-app`)
    await page.getByRole('link', { name: 'Disable' }).click()
    await page.getByText('1 grant of 1 user').waitFor()
    await inspectOnEveryScreen(page, 'admin-disable-app')
    await page.goto(`${stack.settings.issuerUrl}/admin/access?user=nobody`)
    await page.getByText('No user is known as nobody.').waitFor()
    await inspectOnEveryScreen(page, 'admin-access-unknown')
    await page.goto(`${stack.settings.issuerUrl}/admin/access?patient=patient-1`)
    await page.getByText('No app has access').waitFor()
    await inspectOnEveryScreen(page, 'admin-access-none')
    await page.goto(`${stack.settings.issuerUrl}/admin/policy`)
    await page.getByLabel('Patient (name, MRN or id)').fill('juniper')
    await page.keyboard.press('Enter')
    await page
      .getByRole('link', { name: /^Juniper, Alba / })
      .first()
      .press('Enter')
    await page.getByText('All clinicians').waitFor()
    await page.getByText(/^Juniper, /).waitFor()
    await inspectOnEveryScreen(page, 'admin-policy-patient')
    await page.getByRole('link', { name: 'Reload settings' }).press('Enter')
    await page.getByRole('button', { name: 'Reload settings' }).press('Enter')
    await page.getByText('Nothing changed.').waitFor()
    await inspectOnEveryScreen(page, 'admin-reloaded')
    assert.deepEqual(faults, [])
  })

  it('answers who looked at a patient, from where and with which app, and ends it (ADMIN-21)', async () => {
    const user = new HttpUser(stack, '', { 'x-forwarded-for': '10.0.0.8' })
    await user.signIn()
    await user.open(`${stack.settings.issuerUrl}/portal?search=juniper`)
    await user.launch('patient-1')
    await user.api('patient')
    await user.open(`${stack.settings.appUrl}/logout`, { method: 'POST' })
    await user.launch('patient-1')
    const addresses = async (kind: string) => {
      const found = await findRecords(stack.store, { events: [{ kind }], address: '10.0.0.8', limit: 100 })
      return found.length
    }
    for (const kind of ['session-open', 'session-end']) assert.ok((await addresses(kind)) > 0, kind)
    const { page, faults } = await open()
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/admin/audit`)
    await page.getByLabel('Patient (name, MRN or id)').fill('juniper')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Who got data' }).waitFor()
    await page.getByRole('heading', { level: 3, name: /^Juniper, Alba / }).waitFor()
    await page.getByRole('heading', { level: 3, name: /^Juniper, Alban / }).waitFor()
    await inspectOnEveryScreen(page, 'admin-audit-patients')
    await page.getByRole('link', { name: /^Juniper, Alba[ ,]/ }).click()
    const row = page.getByRole('row', { name: /Demo app.*10\.0\.0\.8.*Requests from 127\.0\.0\.1/ }).first()
    await row.waitFor()
    await page.getByText(/^Appeared in a list: /).click()
    const listed = page.getByRole('table', { name: 'Appeared in a list, the last first' })
    await listed.getByRole('row', { name: /Patient list.*10\.0\.0\.8/ }).waitFor()
    await page.getByText(/^Lookup in the administration: /).click()
    const lookups = page.getByRole('table', { name: 'Lookup in the administration, the last first' })
    assert.equal(await lookups.getByRole('row', { name: /Patient list/ }).count(), 1)
    await inspectOnEveryScreen(page, 'admin-audit-patient')
    await listed
      .getByRole('link', { name: /^Sign-ins now/ })
      .first()
      .click()
    await page.getByRole('heading', { name: 'Sign-ins now' }).waitFor()
    await page.goBack()
    await row.getByRole('link', { name: /^Records/ }).click()
    await page
      .getByRole('link', { name: /^Details of record/ })
      .first()
      .click()
    await page.getByText('can still use this access').waitFor()
    await page.getByText('The browser in which the app was authorized').waitFor()
    await inspectOnEveryScreen(page, 'admin-record')
    await page.getByRole('link', { name: 'Revoke access' }).click()
    await page.getByRole('button', { name: 'Revoke access' }).click()
    await page.getByText('The access is revoked').waitFor()
    await page.goto(`${stack.settings.issuerUrl}/admin/clinicians`)
    await page.getByRole('rowheader').getByRole('link').first().click()
    await page.getByRole('link', { name: 'Changes to this account' }).click()
    await page
      .getByText(/grant revoke/)
      .first()
      .waitFor()
    await inspectOnEveryScreen(page, 'admin-audit-target')
    assert.deepEqual(faults, [])
  })

  it('ends one sign-in of a user (ADMIN-3)', async () => {
    const { page } = await open()
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/admin/clinicians?state=without-second-factor`)
    await inspectOnEveryScreen(page, 'admin-users-without-factor')
    await page.getByRole('rowheader').getByRole('link').first().click()
    await page.getByRole('heading', { name: 'Sign-ins now' }).waitFor()
    await inspectOnEveryScreen(page, 'admin-user')
    const ends = page.getByRole('link', { name: /^End the sign-in/ })
    const before = await ends.count()
    await ends.first().click()
    await inspectOnEveryScreen(page, 'admin-end-sign-in')
    await page.getByRole('button', { name: 'End sign-in' }).click()
    await page.getByText('The change is saved').waitFor()
    assert.equal(await ends.count(), before - 1)
  })

  it('gives a user a link to choose a password, which works once and leaves the address at once (LOGIN-17)', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    const { issuerUrl } = stack.settings
    await page.goto(`${issuerUrl}/admin/clinicians/new`)
    await inspectOnEveryScreen(page, 'admin-add-user')
    await page.getByLabel('Username').fill('grace')
    await page.getByLabel('Name', { exact: true }).fill('Dr. Grace Hopper')
    await page.getByLabel('FHIR user').fill('practitioner-1')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Confirm and add user' }).press('Enter')
    await page.getByRole('heading', { name: 'Activation link of Dr. Grace Hopper' }).waitFor()
    const first = await page.getByText('/login/activate#').first().innerText()
    await page.getByRole('link', { name: 'Continue' }).click()
    await page.getByText('Not chosen yet').waitFor()
    await inspectOnEveryScreen(page, 'admin-invited-user')
    await page.getByRole('link', { name: 'Reset password' }).click()
    await page.getByLabel('Temporary password').waitFor()
    await inspectOnEveryScreen(page, 'admin-reset-password')
    await page.getByRole('button', { name: 'Reset password' }).click()
    await page.getByRole('heading', { name: 'Activation link of Dr. Grace Hopper' }).waitFor()
    const link = await page.getByText('/login/activate#').first().innerText()

    const { page: own, context, faults: ownFaults } = await open()
    const urls: string[] = []
    context.on('request', request => urls.push(request.url(), request.headers().referer ?? ''))
    await own.goto(first)
    await own.getByText('This link does not work, or no longer.').waitFor()
    await inspectOnEveryScreen(own, 'activate-ended')
    // In the same tab only the part behind the # differs, and the browser loads no page.
    await own.goto(link)
    await own.getByText('For the account grace at Sallyport').waitFor()
    assert.equal(own.url(), `${issuerUrl}/login/activate`)
    await inspectOnEveryScreen(own, 'activate')
    await own.getByLabel('New password', { exact: true }).fill('short')
    await own.getByLabel('New password again').fill('short')
    await own.keyboard.press('Enter')
    await own.getByText('Use at least 8 characters').waitFor()
    await inspectOnEveryScreen(own, 'activate-refused')
    await own.getByLabel('New password', { exact: true }).fill(CHOSEN)
    await own.getByLabel('New password again').fill(CHOSEN)
    await own.keyboard.press('Enter')
    await own.getByRole('heading', { name: 'Password saved' }).waitFor()
    await inspectOnEveryScreen(own, 'activate-saved')
    await own.getByRole('link', { name: 'Sign in' }).press('Enter')
    await own.getByLabel('Username').fill('grace')
    await own.getByLabel('Password').fill(CHOSEN)
    await own.keyboard.press('Enter')
    await own.waitForURL(`${issuerUrl}/portal`)
    const secret = new URL(link).hash.slice(1)
    assert(urls.some(url => url.endsWith('/login/activate')))
    // Playwright shows the part behind the # of a navigation; a browser does not send it.
    assert.deepEqual(
      urls.filter(url => url.split('#')[0]?.includes(secret)),
      [],
    )
    await own.goto(link)
    await own.getByText('This link was already used.').waitFor()
    await inspectOnEveryScreen(own, 'activate-used')
    assert.deepEqual(faults, [])
    assert.deepEqual(
      ownFaults.filter(fault => !/status of 400/.test(fault)),
      [],
    )
  })

  it('takes a pasted activation link without scripts (LOGIN-17)', async () => {
    const { page } = await open()
    await logIn(page, stack)
    const user = page.getByRole('rowheader').getByRole('link')
    await page.goto(`${stack.settings.issuerUrl}/admin/clinicians?search=grace`)
    await user.click()
    await page.getByRole('link', { name: 'Reset password' }).click()
    await page.getByRole('button', { name: 'Reset password' }).click()
    const link = await page.getByText('/login/activate#').first().innerText()
    const { page: own } = await open({ javaScriptEnabled: false })
    await own.goto(link)
    await screenshot(own, 'activate-without-scripts')
    await own.getByLabel('Your link').fill(link)
    await own.keyboard.press('Enter')
    await own.getByText('For the account grace at Sallyport').waitFor()
    await own.getByLabel('New password', { exact: true }).fill(CHOSEN)
    await own.getByLabel('New password again').fill(CHOSEN)
    await own.keyboard.press('Enter')
    await own.getByRole('heading', { name: 'Password saved' }).waitFor()
  })

  it('finds the patient of an account, shows who it is, and adds it, by keyboard (ADMIN-30)', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    const url = `${stack.settings.issuerUrl}/admin/clinicians`
    await page.goto(url)
    await page.getByText('Loopback only').first().waitFor()
    await inspectOnEveryScreen(page, 'admin-users')
    await page.goto(`${url}/new`)
    await page.getByLabel('Username').fill('clinician')
    await page.getByLabel('Name', { exact: true }).fill('Robin')
    await page.getByLabel('FHIR user').fill('Patient/1')
    await page.keyboard.press('Enter')
    await page.getByText('The username is taken.').waitFor()
    await page.getByText('A FHIR user of this kind is a reference to a Practitioner.').waitFor()
    assert.equal(await page.getByLabel('Username').evaluate(field => field === document.activeElement), true)
    await inspectOnEveryScreen(page, 'admin-user-faults')
    await page.goto(`${url}/new`)
    await page.getByLabel('Find a patient').focus()
    await page.keyboard.type('juniper')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Choose the patient' }).waitFor()
    const row = page.getByRole('row', { name: /Juniper.*1958.*Female/ }).first()
    await row.waitFor()
    await inspectOnEveryScreen(page, 'admin-choose-patient')
    await row.getByRole('button', { name: /^Choose/ }).press('Enter')
    await page.getByRole('heading', { name: 'Add a user' }).waitFor()
    const chosen = await page.getByLabel('FHIR user').inputValue()
    assert.match(chosen, /^Patient\/./)
    await page.getByLabel('Username').fill('bound')
    await page.getByLabel('Name', { exact: true }).fill('Alba Juniper')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Is this the right person?' }).waitFor()
    await page.getByText(/^Juniper, /).waitFor()
    await page.getByText('MRN', { exact: true }).waitFor()
    await inspectOnEveryScreen(page, 'admin-confirm-patient')
    assert.equal(page.url(), `${url}/new`)
    await page.getByRole('button', { name: 'Confirm and add user' }).press('Enter')
    await page.getByText('Activation link of bound').first().waitFor()
    await inspectOnEveryScreen(page, 'admin-activation-link')

    await page.goto(`${url}?search=bound`)
    await page.getByRole('rowheader').getByRole('link').click()
    await page.getByLabel('Related persons').fill('mother-27 nobody')
    await page.getByRole('button', { name: 'Save' }).press('Enter')
    await page.getByRole('heading', { name: 'Are these the right persons?' }).waitFor()
    await page.getByText('Relationship').first().waitFor()
    await page.getByText('The FHIR server has no RelatedPerson/nobody.').waitFor()
    await inspectOnEveryScreen(page, 'admin-confirm-related')
    await page.getByRole('link', { name: 'Back' }).press('Enter')
    await page.getByLabel('Find another patient').fill('nobody at all')
    await page.keyboard.press('Enter')
    await page.getByText('No patient is known as nobody at all.').waitFor()
    await inspectOnEveryScreen(page, 'admin-choose-none')
    await page.getByRole('link', { name: 'Back' }).press('Enter')
    await inspectOnEveryScreen(page, 'admin-bound-user')
    await page.getByLabel('Name', { exact: true }).fill('Alba J.')
    await page.keyboard.press('Enter')
    await page.getByText('The change is saved').waitFor()
    await page.getByRole('link', { name: 'Changes to this account' }).press('Enter')
    await page
      .getByRole('link', { name: /^Details of record/ })
      .first()
      .press('Enter')
    await page.getByRole('row', { name: 'Display name Alba Juniper Alba J.' }).waitFor()
    await inspectOnEveryScreen(page, 'admin-record-change')
    await page.goBack()
    await page
      .getByRole('link', { name: /^Details of record/ })
      .last()
      .press('Enter')
    await page.getByRole('row', { name: 'Username bound' }).waitFor()
    await inspectOnEveryScreen(page, 'admin-record-added')
    assert.deepEqual(
      faults.filter(fault => !fault.includes('status of 400')),
      [],
    )
  })

  it('finds and shows the patient of an account without scripts (ADMIN-30)', async () => {
    const { page } = await open({ javaScriptEnabled: false })
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/admin/clinicians/new`)
    await page.getByLabel('Username').fill('unscripted')
    await page.getByLabel('Name', { exact: true }).fill('Alba Juniper')
    await page.getByLabel('Find a patient').fill('juniper')
    await page.keyboard.press('Enter')
    await page
      .getByRole('button', { name: /^Choose/ })
      .first()
      .press('Enter')
    await page.getByRole('heading', { name: 'Is this the right person?' }).waitFor()
    await page.getByRole('button', { name: 'Back' }).press('Enter')
    assert.equal(await page.getByLabel('Username').inputValue(), 'unscripted')
  })

  it('shows an auditor the lists and the trail, and no action (ADMIN-29)', async () => {
    const { page, faults } = await open()
    const { db } = stack.store
    await logIn(page, stack)
    const { id } = await db
      .selectFrom('clinician')
      .select('id')
      .where('username', '=', 'clinician')
      .executeTakeFirstOrThrow()
    const setRole = (admin: boolean) =>
      db.updateTable('clinician').set({ admin, auditor: !admin }).where('id', '=', id).execute()
    const visit = (path: string) => page.goto(`${stack.settings.issuerUrl}/admin${path}`)
    await visit('/clinicians')
    await page.getByRole('link', { name: 'Add a user' }).waitFor()
    await setRole(false)
    try {
      for (const [path, heading] of [
        ['', 'Overview'],
        ['/apps', 'Apps'],
        ['/apps/sallyport-app', 'Demo app'],
        ['/clinicians', 'Users'],
        [`/clinicians/${id}`, 'Dr. Robin Ahmadi'],
        ['/access', 'Access now'],
        ['/keys', 'Signing keys'],
        ['/providers', 'Sign-in providers'],
        ['/policy', 'Policy'],
        ['/system', 'System'],
        ['/audit', 'Audit'],
      ] as const) {
        await visit(path)
        await page.getByRole('heading', { name: heading, level: 1 }).waitFor()
        const main = page.getByRole('main')
        assert.equal(await main.locator('form[method=post]').count(), 0, path)
        assert.equal(await main.locator('.btn--danger').count(), 0, path)
        await inspectOnEveryScreen(page, `auditor${path.replaceAll('/', '-').replace(id, 'user')}`)
      }
      await page.getByRole('link', { name: 'Verify' }).click()
      await page.getByRole('button', { name: 'Verify now' }).click()
      await page.getByText('No change found').waitFor()
      await visit('/keys/rotate')
      await page.getByRole('heading', { name: 'Auditors change nothing' }).waitFor()
      await inspectOnEveryScreen(page, 'auditor-refused')
    } finally {
      await setRole(true)
    }
    await visit(`/clinicians/${id}`)
    await page.getByRole('heading', { name: 'Sign-ins now' }).waitFor()
    assert.deepEqual(
      faults.filter(fault => !/status of 403/.test(fault)),
      [],
    )
  })

  it('shows records before their filters on a phone, which open by keyboard (ADMIN-21)', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/admin/audit`)
    const filters = page.getByRole('search', { name: 'Audit records' })
    const summary = page.getByText('Filters', { exact: true })
    assert.deepEqual([await filters.isVisible(), await summary.isVisible()], [true, false])
    await page.setViewportSize({ width: 390, height: 844 })
    assert.deepEqual([await filters.isVisible(), await summary.isVisible()], [false, true])
    const first = await page.getByRole('table').getByRole('row').nth(1).boundingBox()
    assert.ok(first && first.y < 844, `the first record is at ${first?.y}`)
    await summary.focus()
    await page.keyboard.press('Enter')
    await inspectOnEveryScreen(page, 'audit-filters-open')
    await page.getByLabel('Event', { exact: true }).selectOption('login')
    await page.getByRole('button', { name: 'Show' }).click()
    await page.getByText('Filters: 1 set').waitFor()
    assert.equal(await filters.isVisible(), false)
    await inspectOnEveryScreen(page, 'audit-filters-set')
    assert.deepEqual(faults, [])
  })

  it('checks an exported file against the trail, with and without changes (ADMIN-27)', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/admin/audit`)
    const downloaded = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Export CSV' }).click()
    const chunks: Buffer[] = []
    for await (const chunk of await (await downloaded).createReadStream()) chunks.push(chunk)
    const csv = Buffer.concat(chunks)
    await page.getByRole('link', { name: 'Verify' }).click()
    await inspectOnEveryScreen(page, 'admin-verify')
    const check = async (buffer: Buffer) => {
      await page
        .getByLabel('File', { exact: true })
        .setInputFiles({ name: 'audit.csv', mimeType: 'text/csv', buffer })
      await page.getByRole('button', { name: 'Check file' }).click()
    }
    await check(csv)
    await page.getByText('The file agrees with the trail').waitFor()
    await inspectOnEveryScreen(page, 'admin-check-file')
    await check(Buffer.from(csv.toString().replace(',login,', ',logout,').concat('99999999,x\r\n')))
    await page.getByText('The file was not checked').waitFor()
    await check(Buffer.from(csv.toString().replace(',login,', ',logout,')))
    await page.getByText('The file differs from the trail').waitFor()
    await inspectOnEveryScreen(page, 'admin-check-file-changed')
    await page.getByRole('button', { name: 'Verify now' }).click()
    await page.getByText('No change found').waitFor()
    await inspectOnEveryScreen(page, 'admin-verified')
    assert.deepEqual(
      faults.filter(fault => !/status of 422/.test(fault)),
      [],
    )
  })
})
