/** Third-party client libraries complete the EHR launch, each in its own app, in a real browser. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, before, describe, it } from 'node:test'
import type { Express } from 'express'
import smart from 'fhirclient'
import * as oidc from 'openid-client'
import type { Page } from 'playwright-core'
import { inspectOnEveryScreen, useBrowser } from './support/browser.ts'
import { type Stack, startStack } from './support/stack.ts'
import { startThirdPartyApp, type ThirdPartyApp } from './support/third-party-app.ts'
import { pickPatient, signIn } from './support/walk.ts'

const SCOPE = 'launch openid fhirUser offline_access patient/Patient.rs patient/Observation.rs'

let stack: Stack
const apps: ThirdPartyApp[] = []
before(async () => {
  stack = await startStack()
  apps.push(await startThirdPartyApp(stack, 'openid-client-app', openidClientApp))
  apps.push(await startThirdPartyApp(stack, 'fhirclient-node-app', fhirclientNodeApp))
  apps.push(await startThirdPartyApp(stack, 'fhirclient-browser-app', fhirclientBrowserApp))
})
after(async () => {
  await Promise.all(apps.map(app => app.close()))
  await stack?.close()
})
const open = useBrowser()

/** What each app shows of its launch. */
interface Seen {
  readonly patient: string | undefined
  readonly family: string | undefined
  readonly fhirUser: string | undefined
  readonly needPatientBanner: unknown
  readonly scope: string | undefined
  /** The answer for another patient than the launched one. */
  readonly otherStatus: number
}

const OTHER = 'patient-2'

function openidClientApp(app: Express, url: string): void {
  const pending = new Map<
    string,
    { config: oidc.Configuration; iss: string; verifier: string; nonce: string }
  >()

  app.get('/launch', async (request, response) => {
    const { iss, launch } = request.query as Record<string, string>
    const found = await fetch(`${iss}/.well-known/smart-configuration`)
    const { issuer } = (await found.json()) as { issuer: string }
    const config = await oidc.discovery(new URL(issuer), 'openid-client-app', undefined, oidc.None(), {
      execute: [oidc.allowInsecureRequests],
    })
    const [verifier, state, nonce] = [oidc.randomPKCECodeVerifier(), oidc.randomState(), oidc.randomNonce()]
    pending.set(state, { config, iss: String(iss), verifier, nonce })
    const address = oidc.buildAuthorizationUrl(config, {
      redirect_uri: `${url}/callback`,
      scope: SCOPE,
      state,
      nonce,
      launch: String(launch),
      aud: String(iss),
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    response.redirect(address.href)
  })

  app.get('/callback', async (request, response) => {
    const { state } = request.query as Record<string, string>
    const launched = pending.get(String(state))
    assert(launched)
    const { config, iss, verifier, nonce } = launched
    const tokens = await oidc.authorizationCodeGrant(config, new URL(request.url, url), {
      pkceCodeVerifier: verifier,
      expectedState: String(state),
      expectedNonce: nonce,
      idTokenExpected: true,
    })
    const renewed = await oidc.refreshTokenGrant(config, tokens.refresh_token ?? '')
    assert.notEqual(renewed.access_token, tokens.access_token)
    const get = (path: string) =>
      fetch(`${iss}/${path}`, { headers: { authorization: `Bearer ${renewed.access_token}` } })
    const patient = (await (await get(`Patient/${tokens.patient}`)).json()) as Patient
    show(response, {
      patient: tokens.patient as string,
      family: patient.name?.[0]?.family,
      fhirUser: tokens.claims()?.fhirUser as string,
      needPatientBanner: tokens.need_patient_banner,
      scope: tokens.scope,
      otherStatus: (await get(`Patient/${OTHER}`)).status,
    })
  })
}

interface Patient {
  readonly name?: readonly { readonly family?: string }[]
}

function fhirclientNodeApp(app: Express, url: string): void {
  const values = new Map<string, unknown>()
  const storage = {
    get: async (key: string) => values.get(key),
    set: async (key: string, value: unknown) => {
      values.set(key, value)
      return value
    },
    unset: async (key: string) => values.delete(key),
  }

  app.get('/launch', (request, response) => {
    const api = smart(request as never, response, storage as never)
    return api.authorize({
      clientId: 'fhirclient-node-app',
      scope: SCOPE,
      redirectUri: `${url}/callback`,
      pkceMode: 'required',
    })
  })
  app.get('/callback', async (request, response) => {
    const client = await smart(request as never, response, storage as never).ready()
    const patient = (await client.patient.read()) as Patient
    const { tokenResponse } = client.state
    show(response, {
      patient: client.patient.id ?? undefined,
      family: patient.name?.[0]?.family,
      fhirUser: client.user.fhirUser ?? undefined,
      needPatientBanner: tokenResponse?.need_patient_banner,
      scope: tokenResponse?.scope,
      otherStatus: await client.request(`Patient/${OTHER}`).then(
        () => 200,
        (error: { status: number }) => error.status,
      ),
    })
  })
}

function show(response: { type(type: string): { send(body: string): unknown } }, seen: Seen): void {
  response.type('html').send(`<!doctype html><title>App</title><pre id="seen">${JSON.stringify(seen)}</pre>`)
}

/** A page without its own server: every request comes from the browser, by CORS. */
function fhirclientBrowserApp(app: Express, url: string): void {
  const library = createRequire(import.meta.url).resolve('fhirclient/build/fhir-client.pure.js')
  const page = (script: string) =>
    `<!doctype html><title>App</title><pre id="seen"></pre><script src="/fhir-client.js"></script><script>${script}</script>`
  app.get('/fhir-client.js', (_request, response) => response.sendFile(library))
  app.get('/launch', (_request, response) => {
    const options = {
      clientId: 'fhirclient-browser-app',
      scope: SCOPE,
      redirectUri: `${url}/callback`,
      pkceMode: 'required',
    }
    response.type('html').send(page(`FHIR.oauth2.authorize(${JSON.stringify(options)})`))
  })
  app.get('/callback', (_request, response) => {
    response.type('html').send(
      page(`(async () => {
        const client = await FHIR.oauth2.ready()
        const patient = await client.patient.read()
        const { need_patient_banner, scope } = client.state.tokenResponse
        const otherStatus = await client.request('Patient/${OTHER}').then(() => 200, error => error.status)
        document.getElementById('seen').textContent = JSON.stringify({
          patient: client.patient.id, family: patient.name[0].family, fhirUser: client.user.fhirUser,
          needPatientBanner: need_patient_banner, scope, otherStatus,
        })
      })()`),
    )
  })
}

/** Picks the app in the portal, launches and allows it, and reads what it shows. */
async function launchThirdParty(page: Page, name: string): Promise<Seen> {
  await pickPatient(page, 'Juniper, Alba')
  await page.getByText('Choose another app').click()
  await page.getByRole('button', { name }).click()
  await page.getByLabel('No encounter').check()
  await page.getByRole('button', { name: /^Launch (?!settings)/ }).click()
  await page.getByRole('heading', { name: new RegExp(`^Allow ${name}`) }).waitFor()
  if (name === 'openid-client-app') await inspectOnEveryScreen(page, 'consent')
  await page.getByRole('button', { name: 'Allow access' }).click()
  const seen = page.locator('#seen', { hasText: '}' })
  return JSON.parse((await seen.textContent()) ?? '')
}

describe('third-party clients', () => {
  for (const name of ['openid-client-app', 'fhirclient-node-app', 'fhirclient-browser-app']) {
    it(`launch with a patient and cannot access another: ${name}`, async () => {
      const { page, faults } = await open()
      await signIn(page, stack)
      const seen = await launchThirdParty(page, name)
      assert.notEqual(seen.patient, OTHER)
      assert.equal(seen.family, 'Juniper')
      assert.match(String(seen.fhirUser), /Practitioner\/[A-Za-z0-9.-]+$/)
      assert.equal(seen.needPatientBanner, true)
      assert.deepEqual(new Set(seen.scope?.split(' ')), new Set(SCOPE.split(' ')))
      assert.equal(seen.otherStatus, 403)
      assert.deepEqual(
        faults.filter(fault => !fault.includes(`Patient/${OTHER}`)),
        [],
      )
    })
  }

  it('get no code if the clinician refuses access', async () => {
    const { page } = await open()
    await signIn(page, stack)
    await pickPatient(page, 'Juniper, Alba')
    await page.getByText('Choose another app').click()
    await page.getByRole('button', { name: 'fhirclient-browser-app' }).click()
    await page.getByLabel('No encounter').check()
    await page.getByRole('button', { name: /^Launch (?!settings)/ }).click()
    await page.getByRole('button', { name: 'Don’t allow' }).click()
    await page.waitForURL('**/callback?*')
    const { searchParams } = new URL(page.url())
    assert.equal(searchParams.get('error'), 'access_denied')
    assert.equal(searchParams.get('code'), null)
  })
})
