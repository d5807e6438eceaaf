/** Second factors in a real browser, by keyboard: required after the password, used at the next sign-in, and on the account pages. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { computeTotpCode } from '../src/auth/users/factors/totp.ts'
import { inspectOnEveryScreen, useBrowser } from './support/browser.ts'
import { type Stack, startStack } from './support/stack.ts'

let stack: Stack
let now = Date.now()
before(async () => {
  stack = await startStack({
    env: { SMART_SAMPLE_PATIENTS: '1', SMART_LOGIN_SECOND_FACTOR: 'all' },
    clock: () => now,
  })
})
after(() => stack?.close())
const open = useBrowser()

/** Signs in with the password, by keyboard. */
async function enterPassword(page: Page, path = '/login', username = stack.user.username): Promise<void> {
  await page.goto(`${stack.settings.issuerUrl}${path}`)
  await page.getByLabel('Username').focus()
  await page.keyboard.type(username)
  await page.keyboard.press('Tab')
  await page.keyboard.type(stack.user.password)
  await page.keyboard.press('Enter')
}

describe('second factors in a browser', () => {
  let secret = ''
  let recovery = ''

  it('an authenticator app is added after the password, and asked for at the next sign-in (FACTOR-5, FACTOR-1)', async () => {
    const { page, faults } = await open({ permissions: ['clipboard-write'] })
    await enterPassword(page)
    await page.getByRole('heading', { name: 'Set up two-step sign-in' }).waitFor()
    await inspectOnEveryScreen(page, 'factor-enrol')
    const link = page.getByRole('link', { name: 'Open in an authenticator app on this device' })
    assert.match((await link.getAttribute('href')) ?? '', /^otpauth:\/\/totp\//)
    await page.getByText('I cannot scan it').click()
    await page.getByRole('button', { name: 'Copy' }).click()
    const key = (await page.locator('.url--block').textContent()) ?? ''
    secret = key.replaceAll(' ', '')
    await page.getByLabel('Code of 6 digits').fill('000000')
    await page.keyboard.press('Enter')
    await page.getByText('This is not the current code').waitFor()
    await inspectOnEveryScreen(page, 'factor-enrol-wrong')
    assert.equal(await page.locator('.url--block').textContent(), key, 'the key stays the same')
    await page.keyboard.type(computeTotpCode(secret, Math.floor(now / 30_000)))
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor()
    await inspectOnEveryScreen(page, 'factor-codes')
    const codes = (await page.locator('.codes').textContent())?.split('\n') ?? []
    recovery = codes[0] ?? ''
    assert.equal(codes.length, 10)
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download as a text file' }).click(),
    ])
    assert.equal(saved.suggestedFilename(), 'recovery-codes.txt')
    const text = await readFile(await saved.path(), 'utf8')
    assert.match(text, /^Recovery codes for Sallyport \(localhost:\d+\)\r\nUsername: clinician\r\n/)
    for (const code of codes) assert.ok(text.includes(`\r\n${code}\r\n`))
    await page.evaluate(() => {
      window.print = () => document.body.setAttribute('data-printed', '')
    })
    await page.getByRole('button', { name: 'Print' }).press('Enter')
    await page.locator('body[data-printed]').waitFor()
    await page.getByRole('link', { name: 'I saved them, continue' }).click()
    await page.getByRole('heading', { level: 1, name: 'Patients' }).waitFor()
    now += 30_000
    await enterPassword(page)
    await page.getByRole('heading', { name: 'Two-step sign-in' }).waitFor()
    await inspectOnEveryScreen(page, 'factor-second-step')
    await page.keyboard.type('123456')
    await page.keyboard.press('Enter')
    await page.getByText('This code is wrong or was used before').waitFor()
    await page.keyboard.type(computeTotpCode(secret, Math.floor(now / 30_000)))
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Patients' }).waitFor()
    assert.deepEqual(
      faults.filter(fault => !/status of 40[01]/.test(fault)),
      [],
    )
  })

  it('are listed, renamed and kept where one is required, and recovery codes are replaced (ACCOUNT-4)', async () => {
    const { page } = await open()
    await enterPassword(page)
    await page.getByLabel('Code').fill(recovery)
    await page.keyboard.press('Enter')
    await page.getByText('You have 9 recovery codes left').waitFor()
    await inspectOnEveryScreen(page, 'factor-code-used')
    await page.getByRole('link', { name: 'Continue' }).click()
    await page.getByRole('heading', { level: 1, name: 'Patients' }).waitFor()
    await page.getByRole('link', { name: 'Account' }).click()
    await page.getByRole('link', { name: 'Two-step sign-in' }).click()
    await page.getByLabel('Name of Authenticator app').fill('My phone')
    await page.keyboard.press('Enter')
    await page.getByLabel('Name of My phone').waitFor()
    await page.getByText('You have 9 recovery codes left').waitFor()
    await inspectOnEveryScreen(page, 'factor-list')
    await page.getByRole('link', { name: /^Remove ./ }).click()
    await page.getByText('Add another second step first').waitFor()
    await page.getByRole('link', { name: 'Two-step sign-in' }).click()
    await page.getByRole('link', { name: 'Add a second step' }).click()
    await inspectOnEveryScreen(page, 'factor-add')
    await page.getByRole('link', { name: 'Two-step sign-in' }).click()
    await page.getByRole('button', { name: 'New recovery codes' }).click()
    await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor()
    await inspectOnEveryScreen(page, 'factor-new-codes')
  })

  it('a new password is chosen after the second factor, and the rules are shown before (LOGIN-12, ACCOUNT-3)', async () => {
    await stack.store.db.updateTable('clinician').set({ must_change_password: true }).execute()
    now += 30_000
    const { page } = await open()
    await enterPassword(page)
    await page.getByLabel('Code').fill(computeTotpCode(secret, Math.floor(now / 30_000)))
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Choose a password' }).waitFor()
    await page.getByText('nor be a password that many people use').waitFor()
    await inspectOnEveryScreen(page, 'new-password')
    await page.getByLabel('New password', { exact: true }).fill('password123')
    await page.getByLabel('New password again').fill('password123')
    await page.keyboard.press('Enter')
    await page.getByText('many people use this one').waitFor()
    await inspectOnEveryScreen(page, 'new-password-refused')
  })

  /** A device that verifies its user, as CDP emulates it. */
  async function addAuthenticator(page: Page, options: object = {}) {
    const cdp = await page.context().newCDPSession(page)
    await cdp.send('WebAuthn.enable')
    const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
        ...options,
      },
    })
    return { cdp, authenticatorId }
  }

  /** A user who has no second factor yet. */
  async function addUser(name: string): Promise<void> {
    const [row] = await stack.store.db.selectFrom('clinician').selectAll().limit(1).execute()
    assert(row)
    await stack.store.db
      .insertInto('clinician')
      .values({ ...row, id: name, username: name, display_name: `Dr. ${name}`, must_change_password: false })
      .execute()
  }

  it('a passkey is added, signs in after the password and without it, and is phishing-resistant (FACTOR-8, FACTOR-6)', async () => {
    await addUser('grace')
    const { page, faults } = await open()
    const { cdp, authenticatorId } = await addAuthenticator(page)
    await enterPassword(page, '/login', 'grace')
    await page.getByRole('heading', { name: 'Set up two-step sign-in' }).waitFor()
    await inspectOnEveryScreen(page, 'passkey-enrol')
    await page.getByRole('button', { name: 'Add a passkey' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor()
    await page.getByRole('link', { name: 'I saved them, continue' }).click()
    await page.getByRole('heading', { level: 1, name: 'Patients' }).waitFor()
    assert.equal((await cdp.send('WebAuthn.getCredentials', { authenticatorId })).credentials.length, 1)
    await enterPassword(page, '/login', 'grace')
    await page.getByRole('heading', { name: 'Two-step sign-in' }).waitFor()
    await inspectOnEveryScreen(page, 'passkey-second-step')
    await page.getByRole('button', { name: 'Use your passkey' }).press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Patients' }).waitFor()
    const readLast = () =>
      stack.store.db
        .selectFrom('login')
        .select(['clinician_id', 'amr', 'acr'])
        .orderBy('created_at', 'desc')
        .orderBy('expires_at', 'desc')
        .executeTakeFirst()
    now += 1000
    await page.context().clearCookies()
    await page.goto(`${stack.settings.issuerUrl}/login`)
    await inspectOnEveryScreen(page, 'passkey-login')
    await page.getByRole('link', { name: 'Sign in with a passkey' }).press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Patients' }).waitFor()
    assert.deepEqual(await readLast(), { clinician_id: 'grace', amr: '["pop","user","mfa"]', acr: 'phr' })
    const other = faults.filter(fault => !/status of 40[01]/.test(fault))
    assert.deepEqual(other, [])
  })

  it('a passkey without a verified user, of another server, or whose counter goes back is refused (FACTOR-8)', async () => {
    await addUser('eve')
    const { page } = await open()
    const { cdp, authenticatorId } = await addAuthenticator(page)
    await enterPassword(page, '/login', 'eve')
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByRole('link', { name: 'I saved them, continue' }).click()
    const [credential] = (await cdp.send('WebAuthn.getCredentials', { authenticatorId })).credentials
    assert(credential)
    const useIt = async () => {
      await page.context().clearCookies()
      await page.goto(`${stack.settings.issuerUrl}/login/passkey`)
      await page.getByRole('heading', { level: 1, name: /^(Patients|Sign in with a passkey)$/ }).waitFor()
      const seen = page.getByText(/could not be verified|No passkey was used/)
      await Promise.race([seen.waitFor(), page.waitForURL('**/portal')])
      return page.url().endsWith('/portal')
    }
    assert.equal(await useIt(), true)
    await cdp.send('WebAuthn.removeCredential', { authenticatorId, credentialId: credential.credentialId })
    await cdp.send('WebAuthn.addCredential', { authenticatorId, credential: { ...credential, signCount: 0 } })
    assert.equal(await useIt(), false, 'the counter went back')
    await inspectOnEveryScreen(page, 'passkey-refused')
    await stack.store.db
      .updateTable('factor')
      .set({ sign_count: 0 })
      .where('clinician_id', '=', 'eve')
      .execute()
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false })
    assert.equal(await useIt(), false, 'the user is not verified')
  })

  it('the account page adds and removes a passkey, and pages work without scripts (ACCOUNT-4)', async () => {
    await addUser('ida')
    const plain = await open({ javaScriptEnabled: false })
    await enterPassword(plain.page, '/login', 'ida')
    await plain.page.getByText('This browser cannot add a passkey').waitFor()
    assert.equal(await plain.page.getByRole('button', { name: 'Add a passkey' }).isVisible(), false)
    const { page } = await open()
    await addAuthenticator(page)
    await enterPassword(page, '/login', 'ida')
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByRole('link', { name: 'I saved them, continue' }).click()
    await page.goto(`${stack.settings.issuerUrl}/account/factors/add`)
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByText('This device already has a passkey').waitFor()
    await inspectOnEveryScreen(page, 'passkey-twice')
    await addAuthenticator(page, { transport: 'usb' })
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByRole('link', { name: 'Remove' }).nth(1).click()
    await page.getByRole('button', { name: 'Remove' }).waitFor()
    await inspectOnEveryScreen(page, 'factor-remove')
    await page.getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('heading', { name: 'Two-step sign-in' }).waitFor()
    assert.equal(await page.getByRole('link', { name: 'Remove' }).count(), 1)
  })
})
