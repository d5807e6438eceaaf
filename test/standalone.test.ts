/** Standalone launch, consent and `/manage` in a real browser, against the three servers: what is chosen is enforced. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { after, before, describe, it } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Express } from 'express'
import * as oidc from 'openid-client'
import type { Page } from 'playwright-core'
import { seedSampleAccounts } from '../src/auth/index.ts'
import { expectAccessible, inspectOnEveryScreen, useBrowser } from './support/browser.ts'
import { HttpUser } from './support/http-user.ts'
import { type Stack, startStack } from './support/stack.ts'
import { startThirdPartyApp, type ThirdPartyApp } from './support/third-party-app.ts'
import { logIn } from './support/walk.ts'

const SCOPE =
  'launch/patient launch/encounter openid fhirUser offline_access patient/Patient.rs patient/Condition.rs patient/Observation.crs'

type Tokens = oidc.TokenEndpointResponse & Readonly<Record<string, unknown>>

let stack: Stack
let helio: ThirdPartyApp
let browserApp: ThirdPartyApp
const received: Tokens[] = []
before(async () => {
  // Zoë Alabaster, whose mother has a sample account, is the 27th.
  stack = await startStack({ env: { SMART_SAMPLE_PATIENTS: '27' } })
  helio = await startThirdPartyApp(stack, 'Helio Trends', helioApp)
  browserApp = await startThirdPartyApp(stack, 'Slate Charts', slateApp)
  const allowed = { scope: 'openid fhirUser offline_access patient/*.cruds user/*.rs' }
  await stack.store.db.updateTable('client').set(allowed).where('first_party', '=', false).execute()
})
after(async () => {
  await Promise.all([helio?.close(), browserApp?.close()])
  await stack?.close()
})
const open = useBrowser()

/** An app with its own server, which keeps the tokens. */
function helioApp(app: Express, url: string): void {
  const pending = new Map<string, { config: oidc.Configuration; verifier: string }>()
  app.get('/start', async (request, response) => {
    const config = await oidc.discovery(
      new URL(stack.settings.issuerUrl),
      'helio-trends',
      undefined,
      oidc.None(),
      {
        execute: [oidc.allowInsecureRequests],
      },
    )
    const [verifier, state] = [oidc.randomPKCECodeVerifier(), oidc.randomState()]
    pending.set(state, { config, verifier })
    const address = oidc.buildAuthorizationUrl(config, {
      redirect_uri: `${url}/callback`,
      state,
      aud: stack.settings.fhirBaseUrl,
      scope: String(request.query.scope ?? SCOPE),
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    response.redirect(address.href)
  })
  app.get('/callback', async (request, response) => {
    const { state, error } = request.query as Record<string, string>
    const { config, verifier } = pending.get(String(state)) ?? {}
    if (config && verifier !== undefined && error === undefined)
      received.push(
        await oidc.authorizationCodeGrant(config, new URL(request.url, url), {
          pkceCodeVerifier: verifier,
          expectedState: String(state),
        }),
      )
    response.type('html').send(`<!doctype html><title>App</title><h1>${error ?? 'Opened'}</h1>`)
  })
}

/** The app of docs/tutorials/browser-app.md, as it is printed there: two pages with `fhirclient`, without its own server. */
function slateApp(app: Express): void {
  const tutorial = readFileSync(new URL('../docs/tutorials/browser-app.md', import.meta.url), 'utf8')
  const [launchPage = '', appPage = ''] = [...tutorial.matchAll(/```html\n([\s\S]*?)```/g)].map(
    ([, html = '']) =>
      html
        .replace("'browser-app'", "'slate-charts'")
        .replace("'index.html'", "'callback'")
        .replace('http://localhost:8080/fhir', stack.settings.fhirBaseUrl),
  )
  const library = createRequire(import.meta.url).resolve('fhirclient/build/fhir-client.pure.min.js')
  app.get('/fhir-client.pure.min.js', (_request, response) => response.sendFile(library))
  app.get('/start', (_request, response) => response.type('html').send(launchPage))
  app.get('/callback', (_request, response) => response.type('html').send(appPage))
}

async function chooseJuniper(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1, name: /^Choose a patient/ }).waitFor()
  await page.getByLabel('Find a patient by name').fill('Juniper')
  await page.getByRole('button', { name: 'Search' }).click()
  await page.getByRole('radio', { name: /^Juniper, Alba\s/ }).check()
  await page.getByRole('button', { name: 'Continue' }).click()
}

function ask(path: string, { access_token }: Tokens): Promise<Response> {
  return fetch(`${stack.settings.fhirBaseUrl}/${path}`, {
    headers: { authorization: `Bearer ${access_token}` },
  })
}

function last(): Tokens {
  const tokens = received.at(-1)
  assert(tokens)
  return tokens
}

describe('a standalone launch', () => {
  it('opens the demo app for the selected patient, without scripts and with the keyboard (PICKER-1)', async () => {
    const { page, faults } = await open({ javaScriptEnabled: false })
    await page.goto(stack.settings.appUrl)
    await page.getByRole('link', { name: 'Choose a record' }).press('Enter')
    await page.getByLabel('Username').fill(stack.user.username)
    await page.getByLabel('Password').fill(stack.user.password)
    await page.getByLabel('Password').press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Choose a patient for Demo app' }).waitFor()
    await page.getByLabel('Find a patient by name').fill('Juniper')
    await page.getByLabel('Find a patient by name').press('Enter')
    const juniper = page.getByRole('radio', { name: /^Juniper, Alba\s/ })
    await juniper.focus()
    await juniper.press('Space')
    await juniper.press('Enter')
    await page.waitForURL(`${stack.settings.appUrl}/s/*`)
    await page.getByRole('heading', { level: 1, name: /Juniper, Alba/ }).waitFor()
    assert.deepEqual(faults, [])
  })

  it('shows no patients in the picker and on the consent page after a sign-out in another tab (PICKER-1)', async () => {
    const { page, context } = await open()
    for (const where of ['picker', 'consent']) {
      await logIn(page, stack)
      await page.goto(`${helio.url}/start?scope=${encodeURIComponent('launch/patient patient/Patient.rs')}`)
      if (where === 'consent') await chooseJuniper(page)
      else {
        const search = page.getByLabel('Find a patient by name')
        await search.fill('Juniper, Alban')
        await search.press('Enter')
        const only = page.getByRole('radio', { name: /^Juniper, Alban/ })
        await page.locator('input[type="radio"]:checked:focus').waitFor()
        assert.equal(await only.isChecked(), true)
        await page.getByLabel('Find a patient by name').fill('Juniper')
        await page.getByRole('button', { name: 'Search' }).click()
        await page.getByRole('heading', { name: '2 patients match' }).waitFor()
        assert.equal(await page.locator('input[type="radio"]:checked').count(), 0)
        await search.press('ArrowDown')
        assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('value')), 'patient-1')
      }
      const elsewhere = await context.newPage()
      await elsewhere.goto(`${stack.settings.issuerUrl}/manage`)
      await elsewhere.getByRole('button', { name: 'Sign out' }).click()
      await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
      assert.equal(await page.getByText('Juniper').count(), 0)
      await elsewhere.close()
      await page.getByLabel('Username').fill(stack.user.username)
      await page.getByLabel('Password').fill(stack.user.password)
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page
        .getByRole('heading', { level: 1, name: where === 'picker' ? /^Choose a patient/ : /^Allow/ })
        .waitFor()
    }
  })

  it('works for the browser app of the tutorial, with fhirclient', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    await page.goto(`${browserApp.url}/start`)
    await chooseJuniper(page)
    await page.getByRole('button', { name: 'Allow access' }).click()
    await page.getByRole('heading', { name: 'Juniper, Alba' }).waitFor()
    await page.getByRole('listitem').filter({ hasText: 'Essential hypertension' }).waitFor()
    const scope = await page.evaluate('FHIR.oauth2.ready().then(client => client.state.tokenResponse.scope)')
    assert.equal(scope, 'launch/patient openid fhirUser patient/Patient.rs patient/Condition.rs')
    assert.deepEqual(faults, [])
  })

  it('opens the record of a child for the mother, whose user/ scopes reach no other patient (PATIENTS-7)', async () => {
    await seedSampleAccounts(stack.store)
    const { page, faults } = await open()
    const scope = 'launch/patient openid fhirUser patient/*.rs user/*.rs'
    await page.goto(`${helio.url}/start?scope=${encodeURIComponent(scope)}`)
    await page.getByLabel('Username').fill('mira')
    await page.getByLabel('Password').fill(stack.user.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    const heading = 'Allow Helio Trends to use the record of Zoë Alabaster?'
    await page.getByRole('heading', { level: 1, name: heading }).waitFor()
    await inspectOnEveryScreen(page, 'consent-mother')
    await page.getByRole('button', { name: 'Allow access' }).click()
    await page.getByRole('heading', { name: 'Opened' }).waitFor()
    const tokens = last()
    assert.equal(tokens.patient, 'patient-27')
    const { entry } = await (await ask('Patient', tokens)).json()
    assert.deepEqual(
      entry.map(({ resource }: { resource: { id: string } }) => resource.id),
      ['patient-27'],
    )
    assert.equal((await ask('Patient/patient-1', tokens)).status, 403)
    assert.equal((await ask('RelatedPerson/mother-27', tokens)).status, 200)
    await page.goto(`${stack.settings.issuerUrl}/account/access-log`)
    await page.getByRole('listitem').filter({ hasText: 'An app that you allowed' }).first().waitFor()
    await expectAccessible(page)
    await page.goto(`${stack.settings.issuerUrl}/home`)
    await page.getByRole('link', { name: 'End access of Helio Trends' }).waitFor()
    await inspectOnEveryScreen(page, 'home')
    for (const name of ['sign-ins', 'password']) {
      await page.goto(`${stack.settings.issuerUrl}/account/${name}`)
      await expectAccessible(page)
    }
    assert.deepEqual(faults, [])
  })

  it('sends access_denied after a cancellation', async () => {
    const { page } = await open()
    await logIn(page, stack)
    await page.goto(`${helio.url}/start`)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('heading', { name: 'access_denied' }).waitFor()
  })
})

describe('consent and /manage', () => {
  it('grants the approved scopes, enforces them, and revokes them at once (REVOKE-3)', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    await page.goto(`${helio.url}/start`)
    await inspectOnEveryScreen(page, 'picker')
    await chooseJuniper(page)
    await page.getByRole('heading', { level: 1, name: /^Choose an encounter/ }).waitFor()
    await inspectOnEveryScreen(page, 'picker-encounter')
    await page.setViewportSize({ width: 390, height: 664 })
    await page.locator('label.choice').last().scrollIntoViewIfNeeded()
    const [banner, choice] = await Promise.all([
      page.locator('.patient').boundingBox(),
      page.locator('label.choice').last().boundingBox(),
    ])
    assert.ok(
      banner && choice && banner.y >= 0 && banner.y + banner.height <= choice.y,
      'whose encounters they are',
    )
    await page.setViewportSize({ width: 1280, height: 720 })
    await page.getByRole('radio', { name: 'No encounter' }).check()
    await page.getByRole('button', { name: 'Continue' }).click()

    await page.getByRole('heading', { level: 1, name: 'Allow Helio Trends to use this record?' }).waitFor()
    // Enter in a checkbox must not be a decision.
    await page.getByRole('checkbox', { name: /^Conditions/ }).press('Enter')
    await page.getByRole('checkbox', { name: /^Conditions/ }).uncheck()
    const decision = page.getByRole('region', { name: 'Your decision' })
    await decision.getByText('The app may add entries. It keeps access while you are away.').waitFor()
    await page.getByText('Choose which measurements').click()
    for (const part of [
      'Laboratory results',
      'Social history',
      'Questionnaires',
      'Social needs',
      'Clinical tests',
    ])
      await page.getByRole('checkbox', { name: part, exact: true }).uncheck()
    assert.match(await page.locator('li', { hasText: 'Choose which measurements' }).innerText(), /In part/)
    await inspectOnEveryScreen(page, 'consent-chosen')
    await page.getByRole('checkbox', { name: /^Add measurements/ }).uncheck()
    assert.equal(await decision.getByText('The app may add entries.').isVisible(), false)
    await page.getByRole('button', { name: 'Allow access' }).press('Enter')
    await page.getByRole('heading', { name: 'Opened' }).waitFor()

    const tokens = last()
    const vitals =
      'patient/Observation.rs?category=http://terminology.hl7.org/CodeSystem/observation-category|vital-signs'
    assert.equal(tokens.scope, `launch/patient openid fhirUser offline_access patient/Patient.rs ${vitals}`)
    await assertEnforced(tokens)

    await page.goto(`${stack.settings.issuerUrl}/manage`)
    await inspectOnEveryScreen(page, 'manage')
    await page.getByRole('link', { name: 'End access of Helio Trends' }).click()
    await inspectOnEveryScreen(page, 'manage-remove')
    await page.getByRole('button', { name: 'End access' }).click()
    await page.getByText('Helio Trends can no longer use any record on your behalf').waitFor()
    await assertRefusedSoon(tokens)
    assert.deepEqual(faults, [])
  })

  it('offers the kinds of a wildcard one by one', async () => {
    const { page, faults } = await open()
    await logIn(page, stack)
    await page.goto(`${helio.url}/start?scope=${encodeURIComponent('launch/patient patient/*.read')}`)
    await chooseJuniper(page)
    await page.getByText('Choose which kinds of data').click()
    await page.getByRole('checkbox', { name: 'Medicines prescribed', exact: true }).uncheck()
    await inspectOnEveryScreen(page, 'consent-wildcard')
    await page.getByRole('button', { name: 'Allow access' }).click()
    await page.getByRole('heading', { name: 'Opened' }).waitFor()
    const granted = String(last().scope).split(' ')
    assert.ok(granted.includes('patient/Condition.read'))
    assert.ok(!granted.includes('patient/*.read') && !granted.includes('patient/MedicationRequest.read'))
    const { patient } = last()
    assert.equal((await ask(`MedicationRequest?patient=${patient}`, last())).status, 403)
    assert.equal((await ask(`Condition?patient=${patient}`, last())).status, 200)
    assert.deepEqual(faults, [])
  })
})

describe('the administration area', () => {
  const PAGES = [
    '',
    '/apps',
    '/apps/new',
    '/apps/sallyport-app',
    '/apps/sallyport-app/disable',
    '/clinicians',
    '/clinicians/new',
    '/keys',
    '/keys/rotate',
    '/audit',
    '/audit/1',
    '/audit/verify',
    '/system',
    '/reload',
    '/providers',
    '/policy',
    '/policy?patient=patient-1',
  ]

  it('signs an administrator in again before a key rotation, and shows the rotation in the audit review (ADMIN-24)', async () => {
    await seedSampleAccounts(stack.store)
    const { page, faults } = await open()
    const url = `${stack.settings.issuerUrl}/admin`
    await page.goto(`${url}/keys`)
    await page.getByLabel('Username').fill('admin')
    await page.getByLabel('Password').fill(stack.user.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Signing keys' }).waitFor()
    const earlier = { created_at: Date.now() - 600_000, seen_at: Date.now() }
    await stack.store.db.updateTable('login').set(earlier).execute()
    await page.getByRole('link', { name: 'Rotate keys' }).click()
    await page.getByText('Sign in again to continue.').waitFor()
    assert.equal(await page.getByLabel('Username').inputValue(), 'admin')
    await page.getByLabel('Password').fill(stack.user.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'Rotate keys' }).click()
    await page.getByText('A new key is published.').waitFor()
    await page.getByRole('link', { name: 'Audit' }).click()
    await page.getByRole('cell', { name: 'Administration: keys rotate' }).waitFor()
    const { id } = await stack.store.db
      .selectFrom('clinician')
      .select('id')
      .where('username', '=', 'admin')
      .executeTakeFirstOrThrow()
    for (const path of [...PAGES, `/clinicians/${id}`]) {
      await page.goto(`${url}${path}`)
      await inspectOnEveryScreen(page, `admin${path.replaceAll(/[/?=]/g, '-')}`)
    }
    assert.deepEqual(faults, [])
  })

  it('shows what needs attention, verifies the trail, changes for whom a related person acts, and removes a user (ADMIN-24)', async () => {
    await seedSampleAccounts(stack.store)
    await stack.store.db
      .insertInto('clinician')
      .values({ username: 'ghost', display_name: 'Dr. Ghost', password_hash: '!', fhir_user_id: 'nobody' })
      .execute()
    const { page, faults } = await open()
    const url = `${stack.settings.issuerUrl}/admin`
    await page.goto(url)
    await page.getByLabel('Username').fill('admin')
    await page.getByLabel('Password').fill(stack.user.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Needs attention' }).waitFor()
    await page.getByText('The FHIR server has no resource for the FHIR user of the account ghost.').waitFor()
    await inspectOnEveryScreen(page, 'admin-overview')
    await page.getByText('The audit trail has never been verified.').waitFor()
    await page.getByRole('link', { name: 'Verify', exact: true }).click()
    await page.getByRole('button', { name: 'Verify now' }).press('Enter')
    await page.getByText('No change found.').waitFor()
    await inspectOnEveryScreen(page, 'admin-verified')
    await page.getByLabel('Head of an earlier verification').fill(`1:${'W'.repeat(43)}`)
    await page.getByRole('button', { name: 'Verify now' }).press('Enter')
    await page.getByText('Check that you copied it exactly.').waitFor()
    await inspectOnEveryScreen(page, 'admin-unknown-head')
    await page.goto(`${url}/clinicians?search=mira`)
    await page.getByRole('rowheader').getByRole('link').click()
    const persons = page.getByLabel('Related persons')
    const named = await persons.inputValue()
    await persons.fill(`${named}\nRelatedPerson/nobody`)
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The FHIR server has no RelatedPerson/nobody.').waitFor()
    await page.getByRole('button', { name: 'Continue anyway and save' }).click()
    await page.getByText('The change is saved.').waitFor()
    await page.getByRole('link', { name: 'Check whose records it opens' }).click()
    await page.getByText('The FHIR server has no RelatedPerson/nobody.').waitFor()
    await inspectOnEveryScreen(page, 'admin-related-person')
    await page.getByLabel('Related persons').fill(named)
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The change is saved.').waitFor()
    assert.equal(await page.getByText('The FHIR server has no').count(), 0)
    await page.goto(`${url}/clinicians?search=ghost`)
    await page.getByRole('rowheader').getByRole('link').click()
    await page.getByText('The FHIR server has no Practitioner/nobody.').waitFor()
    await inspectOnEveryScreen(page, 'admin-unknown-user')
    await page.getByRole('link', { name: 'Remove', exact: true }).click()
    await inspectOnEveryScreen(page, 'admin-remove-user')
    await page.getByRole('button', { name: 'Remove user' }).click()
    await page.getByText('The user is removed.').waitFor()
    await page.goto(url)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    assert.equal(await page.getByText(/never verified|account ghost/).count(), 0)
    await inspectOnEveryScreen(page, 'admin-overview-after')
    assert.deepEqual(faults, [])
  })

  it('names app, user and patient before access is revoked (ADMIN-24)', async () => {
    await seedSampleAccounts(stack.store)
    const user = new HttpUser(stack)
    await user.signIn()
    await user.launch('patient-1')
    const { page } = await open()
    const url = `${stack.settings.issuerUrl}/admin`
    await page.goto(`${url}/apps/sallyport-app`)
    await page.getByLabel('Username').fill('admin')
    await page.getByLabel('Password').fill(stack.user.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page
      .getByRole('link', { name: /^Revoke/ })
      .first()
      .click()
    await page.getByText('Juniper, Alba').waitFor()
    await inspectOnEveryScreen(page, 'admin-revoke')
    await page.getByRole('button', { name: 'Revoke access' }).click()
    await page.getByText('The access is revoked.').waitFor()
  })

  it('refuses a clinician who is not an administrator', async () => {
    const { page } = await open()
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/admin`)
    await page.getByRole('heading', { name: 'You are not an administrator' }).waitFor()
    await expectAccessible(page)
  })
})

describe('the portal with several apps', () => {
  it('launches each of them, with further options', async () => {
    await stack.store.db
      .updateTable('client')
      .set({ approved: false })
      .where('client_id', '=', 'slate-charts')
      .execute()
    const { page, faults } = await open()
    await logIn(page, stack)
    await page.goto(`${stack.settings.issuerUrl}/portal?search=Juniper`)
    await page.getByRole('link', { name: /Juniper, Alba\s/ }).click()
    const another = page.getByText('Choose another app')
    await another.click()
    const slate = page.locator('.choice--link', { hasText: 'Slate Charts' })
    const badge = slate.getByText('Unverified')
    const measure = async () => ((await badge.boundingBox())?.y ?? 0) - ((await slate.boundingBox())?.y ?? 0)
    const listed = await measure()
    await slate.click()
    await page.getByText('Unverified app.').waitFor()
    // One of them has a line above it.
    assert.ok(Math.abs((await measure()) - listed) <= 1, 'the badge stays beside the name of a chosen app')
    for (const name of ['Demo app', 'Slate Charts', 'Demo app']) {
      await another.click()
      await page.getByRole('group', { name: 'App' }).getByRole('button', { name }).click()
      await page.getByRole('button', { name: `Launch ${name}`, exact: true }).waitFor()
    }
    await page.getByText('More options').click()
    await inspectOnEveryScreen(page, 'portal-more')
    await page.getByLabel('No encounter').check()
    await page.getByLabel('The EHR shows it').check()
    await page.getByLabel('More records in context').fill('Patient/x')
    await page.getByRole('button', { name: /^Launch (?!settings)/ }).click()
    await page
      .getByText('Patient has its own member and may be in fhirContext only with a role other than launch')
      .waitFor()
    assert.equal(await page.getByLabel('More records in context').inputValue(), 'Patient/x')
    assert.ok(await page.getByLabel('The EHR shows it').isChecked())
    await inspectOnEveryScreen(page, 'portal-fault')
    assert.deepEqual(
      faults.filter(fault => !fault.includes('status of 400')),
      [],
    )
  })
})

async function assertEnforced(tokens: Tokens): Promise<void> {
  const { patient } = tokens
  assert.equal((await ask(`Patient/${patient}`, tokens)).status, 200)
  assert.equal((await ask(`Condition?patient=${patient}`, tokens)).status, 403)
  const found = (await (await ask(`Observation?patient=${patient}&_count=200`, tokens)).json()) as {
    readonly entry?: readonly { readonly resource: { readonly category?: unknown } }[]
  }
  assert.ok(found.entry && found.entry.length > 0)
  for (const { resource } of found.entry) assert.match(JSON.stringify(resource.category), /"vital-signs"/)
  const headers = { authorization: `Bearer ${tokens.access_token}`, 'content-type': 'application/fhir+json' }
  const written = await fetch(`${stack.settings.fhirBaseUrl}/Observation`, {
    method: 'POST',
    headers,
    body: '{}',
  })
  assert.equal(written.status, 403)
}

/** Within 5 seconds. */
async function assertRefusedSoon(tokens: Tokens): Promise<void> {
  const until = Date.now() + 5000
  for (;;) {
    const { status } = await ask(`Patient/${tokens.patient}`, tokens)
    if (status === 401) return
    assert.ok(Date.now() < until, `Still answered with ${status} after 5 s`)
    await wait(200)
  }
}
