/** What a security officer does in a real browser: who has access now, one sign-in, and a check of an exported file. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { inspectOnEveryScreen, useBrowser } from './support/browser.ts'
import { HttpUser } from './support/http-user.ts'
import { type Stack, startStack } from './support/stack.ts'
import { logIn } from './support/walk.ts'

let stack: Stack
before(async () => {
  stack = await startStack({ env: { SMART_SAMPLE_PATIENTS: '2' } })
  await stack.store.db.updateTable('clinician').set({ admin: true }).execute()
  const user = new HttpUser(stack)
  await user.signIn()
  for (const patient of ['patient-1', 'patient-2']) await user.launch(patient)
})
after(() => stack?.close())
const open = useBrowser()

describe('the administration in a browser', () => {
  it('shows who has access now, filters by keyboard, and names what a revocation ends (REVOKE-3)', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/admin/access`)
    await page.getByRole('link', { name: 'Access', exact: true }).waitFor()
    assert.equal(await page.getByRole('link', { name: /^Revoke/ }).count(), 2)
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
    assert.deepEqual(faults, [])
  })

  it('answers who looked at a patient, from where and with which app, and ends it (ADMIN-21)', async () => {
    const user = new HttpUser(stack)
    await user.signIn()
    await user.launch('patient-1')
    const { page, faults } = await open()
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/admin/audit`)
    await page.getByLabel('Patient (name, MRN or id)').fill('juniper')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Who got data' }).waitFor()
    const row = page.getByRole('row', { name: /Demo app.*127\.0\.0\.1/ }).first()
    await inspectOnEveryScreen(page, 'admin-audit-patient')
    await row.getByRole('link', { name: /^Records/ }).click()
    await page
      .getByRole('link', { name: /^Details of record/ })
      .first()
      .click()
    await page.getByText('can still use this access').waitFor()
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
