/** What an administrator of accounts does in a real browser. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { addWrongPasswords } from '../src/auth/testing/wrong-passwords.ts'
import { inspectOnEveryScreen, useBrowser } from './support/browser.ts'
import { type Stack, startStack } from './support/stack.ts'
import { logIn } from './support/walk.ts'

let stack: Stack
before(async () => {
  stack = await startStack({ env: { SMART_SAMPLE_PATIENTS: '2' } })
  const { db } = stack.store
  await db.updateTable('clinician').set({ admin: true }).execute()
  const grete = { username: 'grete', display_name: 'Dr. Grete Hartwig', fhir_user_id: 'practitioner-2' }
  const { id } = await db
    .insertInto('clinician')
    .values({ ...grete, password_hash: 'none', created_at: 0 })
    .returning('id')
    .executeTakeFirstOrThrow()
  await addWrongPasswords(db, id)
})
after(() => stack?.close())
const open = useBrowser()

describe('the administration of accounts in a browser', () => {
  it('names a locked and unused account, says why, and unlocks it (LOGIN-16, ADMIN-28)', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/admin`)
    await page.getByText('An account is locked after too many wrong passwords: grete.').waitFor()
    await page.getByText('Nobody has signed in to an account for 90 days.').waitFor()
    await inspectOnEveryScreen(page, 'admin-overview-locked')
    await page.goto(`${stack.settings.issuerUrl}/admin/clinicians`)
    await inspectOnEveryScreen(page, 'admin-users')
    const downloaded = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Export CSV' }).click()
    assert.equal((await downloaded).suggestedFilename(), 'users.csv')
    await page.setViewportSize({ width: 390, height: 800 })
    await page.getByRole('link', { name: 'Locked', exact: true }).click()
    await page.getByRole('link', { name: 'Dr. Grete Hartwig' }).click()
    await page.getByText(/mostly from 203\.0\.113\.7/).waitFor()
    await inspectOnEveryScreen(page, 'admin-user-locked')
    await page.getByRole('link', { name: 'Unlock' }).click()
    await page.getByRole('heading', { name: 'Unlock Dr. Grete Hartwig?' }).waitFor()
    await inspectOnEveryScreen(page, 'admin-unlock')
    await page.getByRole('button', { name: 'Unlock' }).focus()
    await page.keyboard.press('Enter')
    await page.getByText('The change is saved').waitFor()
    assert.equal(await page.getByText('mostly from').count(), 0)
    assert.deepEqual(faults, [])
  })

  it('tells everyone alike, after some failures, why a password may be refused (LOGIN-16)', async () => {
    const { page } = await open()
    await page.goto(`${stack.settings.issuerUrl}/login`)
    for (let at = 0; at < 3; at++) {
      await page.getByLabel('Username').fill('nobody')
      await page.getByLabel('Password').fill(`wrong ${at}`)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('The username or password is incorrect').waitFor()
    }
    await page.getByText('An administrator can unlock it').waitFor()
    await inspectOnEveryScreen(page, 'login-repeated')
  })
})
