/** The organization of an installation, in a real browser: its name, logo, colours and contact. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { seedSampleAccounts } from '../src/auth/index.ts'
import { expectNoSidewaysScroll, inspectOnEveryScreen, useBrowser } from './support/browser.ts'
import { type Stack, startStack } from './support/stack.ts'
import { signIn } from './support/walk.ts'

const LOGO =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 170 32"><path fill="#006747" d="M0 0h32v32H0z"/><text x="40" y="22" font-size="16" font-family="sans-serif">North Hospital</text></svg>'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-brand-'))
let stack: Stack
before(async () => {
  const logo = join(folder, 'logo.svg')
  writeFileSync(logo, LOGO)
  stack = await startStack({
    env: {
      // The mother of the 27th has an account.
      SMART_SAMPLE_PATIENTS: '27',
      SMART_BRAND_NAME: 'North Hospital',
      SMART_BRAND_SUPPORT: 'Service desk, 555 0100, help@north.example',
      SMART_BRAND_COLOUR: '#006747',
      SMART_BRAND_LOGO: logo,
    },
  })
})
after(async () => {
  await stack?.close()
  rmSync(folder, { recursive: true, force: true })
})
const open = useBrowser()

describe('the pages of an organization', () => {
  it('have its logo, colours and contact, on every screen', async () => {
    const { page, faults } = await open()
    const { issuerUrl } = stack.settings
    const see = async (name: string) => {
      assert.ok(
        await page.locator('.logo__image').evaluate(image => (image as HTMLImageElement).naturalWidth > 0),
      )
      assert.equal(
        await page.evaluate(() => getComputedStyle(document.body).getPropertyValue('--accent')),
        '#006747',
      )
      await inspectOnEveryScreen(page, `brand-${name}`)
    }
    await page.goto(`${issuerUrl}/login`)
    await see('sign-in')
    await signIn(page, stack)
    for (const path of ['/portal', '/manage', '/account/sign-ins']) {
      await page.goto(issuerUrl + path)
      await see(path.replaceAll('/', '-').slice(1))
    }
    assert.deepEqual(faults, [])
    await page.goto(`${issuerUrl}/nowhere`)
    await see('not-found')
  })

  it('tell patients of its name, its contact, and each record by whose it is (PATIENTS-8)', async () => {
    await seedSampleAccounts(stack.store)
    const { issuerUrl } = stack.settings
    const { page, faults } = await open()
    await page.goto(`${issuerUrl}/login`)
    await page.getByText('Use your North Hospital account.').waitFor()
    await page
      .getByText(
        'Forgot your password, or can’t sign in? Ask for help, or for a link to choose a new password: Service desk',
      )
      .waitFor()
    await page.getByLabel('Username').fill('mira')
    await page.getByLabel('Password').fill(stack.user.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('which apps you let use the record of Zoë Alabaster').waitFor()
    await page.getByRole('link', { name: 'Everyone who looked at the record of Zoë Alabaster' }).waitFor()
    await page.getByText('Ask: Service desk, 555 0100').waitFor()
    await inspectOnEveryScreen(page, 'brand-home')
    assert.equal(await page.title(), 'Start – North Hospital')
    await page.getByRole('link', { name: 'Who looked', exact: true }).click()
    await page.getByRole('heading', { name: 'Who looked at the record of Zoë Alabaster' }).waitFor()
    await page.getByText('Ask: Service desk, 555 0100').waitFor()
    await inspectOnEveryScreen(page, 'brand-who-looked')
    assert.deepEqual(faults, [])
  })

  it('begin at the same place, however wide their content is', async () => {
    const { page } = await open()
    await signIn(page, stack)
    const edges = new Set<number>()
    for (const path of [
      '/portal',
      '/manage',
      '/account/sign-ins',
      '/account/password',
      '/logout',
      '/nowhere',
    ]) {
      await page.goto(stack.settings.issuerUrl + path)
      edges.add(
        await page.evaluate(() => document.querySelector('main > *')?.getBoundingClientRect().left ?? 0),
      )
      await expectNoSidewaysScroll(page)
    }
    assert.equal(edges.size, 1, [...edges].join())
  })

  it('serve the logo so that it cannot act, and browsers may keep it', async () => {
    const { page } = await open()
    await page.goto(`${stack.settings.issuerUrl}/login`)
    const url = await page.locator('.logo__image').getAttribute('src')
    const response = await fetch(stack.settings.issuerUrl + url)
    assert.equal(await response.text(), LOGO)
    assert.equal(response.headers.get('content-type'), 'image/svg+xml')
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
    assert.match(response.headers.get('content-security-policy') ?? '', /^default-src 'none'.*sandbox$/)
    assert.match(response.headers.get('cache-control') ?? '', /immutable/)
  })

  it('hand the colour to apps', async () => {
    const { getStyle } = await import('../src/auth/oauth/style.ts')
    const response = await fetch(stack.settings.issuerUrl + getStyle(stack.settings).path)
    assert.equal((await response.json()).color_highlight, '#006747')
  })
})
