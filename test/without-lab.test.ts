/** The servers without the lab: it is not loaded, none of its routes exists, and data of its kind changes nothing. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Insertable } from 'kysely'
import { labPaths } from '../src/auth/lab/paths.ts'
import { type LabSettings, SIMULATIONS } from '../src/auth/lab/settings.ts'
import { createKeyRing, signOwnJwt } from '../src/auth/oauth/keys/key-ring.ts'
import {
  computeChallenge,
  decodeClaims,
  readRedirect,
  VERIFIER,
} from '../src/auth/testing/test-auth-server.ts'
import { TestBrowser } from '../src/auth/testing/test-browser.ts'
import { ensureSecret, readSettings } from '../src/config/index.ts'
import type { Claims } from '../src/jwt/index.ts'
import { createSealer, openStore, type Schema, sha256 } from '../src/store/index.ts'
import { listRoutes } from '../src/web/http/index.ts'
import { type Stack, startStack } from './support/stack.ts'
import { newPlace, type Place, startProcess } from './support/started.ts'

const PATIENT = 'patient-1'
const APP = { client_id: 'helio', redirect_uri: 'https://helio.example/callback' }
const EVERYTHING: LabSettings = {
  skipsConsent: true,
  isPkceOptional: true,
  scope: 'openid',
  tokenSeconds: 3600,
  style: 'none',
}

let stack: Stack
let browser: TestBrowser
before(async () => {
  stack = await startStack({ env: { SMART_LAB: 'false', SMART_SAMPLE_PATIENTS: '2' } })
  await addClient(APP.client_id)
  browser = new TestBrowser(stack.auth)
  await browser.login()
})
after(() => stack?.close())

async function addClient(id: string, more: Partial<Insertable<Schema['client']>> = {}): Promise<void> {
  const client: Insertable<Schema['client']> = {
    client_id: id,
    name: id,
    auth_method: 'none',
    redirect_uris: JSON.stringify([APP.redirect_uri]),
    launch_url: 'https://helio.example/launch',
    scope: 'openid launch offline_access patient/*.rs',
    first_party: true,
    created_at: Date.now(),
    ...more,
  }
  await stack.store.db.insertInto('client').values(client).execute()
}

async function launch(): Promise<string> {
  const form = { patientId: PATIENT, clientId: APP.client_id }
  const { headers } = await browser.post('/portal/launch', form)
  return new URL(headers.location ?? '').searchParams.get('launch') ?? assert.fail()
}

function authorize(parameters: Readonly<Record<string, string>>, from = browser) {
  const query = new URLSearchParams({
    response_type: 'code',
    scope: 'openid launch offline_access patient/Patient.rs',
    ...APP,
    state: 'state-1',
    aud: stack.settings.fhirBaseUrl,
    code_challenge_method: 'S256',
    code_challenge: computeChallenge(VERIFIER),
    ...parameters,
  })
  return from.get(`/oauth2/authorize?${query}`)
}

/** Gets a code, and stores data of the lab with its grant. */
async function getCode(settings: LabSettings, more: { readonly basis?: string } = {}): Promise<string> {
  const token = await launch()
  const { code = '' } = readRedirect(await authorize({ launch: token }))
  const { db } = stack.store
  const { grant_id } = await db
    .selectFrom('authorization_code')
    .select('grant_id')
    .where('code_hash', '=', sha256(code))
    .executeTakeFirstOrThrow()
  const stored = { extension: JSON.stringify(settings), ...more }
  await db.updateTable('grant').set(stored).where('id', '=', grant_id).execute()
  return code
}

const requestToken = (form: Readonly<Record<string, string>>) =>
  browser.post('/oauth2/token', { client_id: APP.client_id, ...form })

const exchange = (code: string, verifier: Readonly<Record<string, string>> = { code_verifier: VERIFIER }) =>
  requestToken({ grant_type: 'authorization_code', redirect_uri: APP.redirect_uri, code, ...verifier })

const readPatient = (token: string) =>
  fetch(`${stack.settings.fhirBaseUrl}/Patient/${PATIENT}`, { headers: { authorization: `Bearer ${token}` } })

describe('servers without the lab', () => {
  it('have none of its routes, and no page links to them (LAB-2)', async () => {
    const routes = listRoutes(stack.auth).map(({ path }) => path)
    for (const path of Object.values(labPaths)) {
      assert.equal(routes.includes(path), false, path)
      assert.equal((await browser.get(`${path}?client=helio&patient=${PATIENT}`)).statusCode, 404, path)
    }
    const { body } = await browser.get(`/portal?patient=${PATIENT}&client=${APP.client_id}`)
    assert.match(body, /Launch helio/)
    assert.doesNotMatch(body, />Lab<|Launch settings for developers|Register an app/)
  })

  it('know no launch with its data, and ask its user to sign in', async () => {
    const token = await launch()
    const extension = JSON.stringify({ ...EVERYTHING, loginHash: 'x' })
    await stack.store.db.updateTable('launch_token').set({ extension }).where('used_at', 'is', null).execute()
    const refused = readRedirect(await authorize({ launch: token }, new TestBrowser(stack.auth)))
    assert.equal(refused.error, 'invalid_request')
    assert.match(refused.error_description ?? '', /launch is not known/)
    const { headers } = await authorize({ launch: await launch() }, new TestBrowser(stack.auth))
    assert.match(headers.location ?? '', /^\/login\?/)
  })

  it('have no client that expires', async () => {
    await addClient('temporary', { expires_at: Date.now() + 3_600_000 })
    const { statusCode, body } = await authorize({ client_id: 'temporary' })
    assert.equal(statusCode, 400)
    assert.match(body, /The app is not registered/)
    assert.doesNotMatch((await browser.get(`/portal?patient=${PATIENT}`)).body, /temporary/)
  })

  it('accept no grant that it gave', async () => {
    const basis = JSON.stringify({ loopback: true, developerTools: true })
    const refused = await exchange(await getCode(EVERYTHING, { basis }))
    assert.equal(refused.json().error, 'invalid_grant')
  })

  it('issue usual tokens for a grant with its data, whatever the data says (LAB-2)', async () => {
    for (const simulate of SIMULATIONS.filter(name => !name.startsWith('authorize:'))) {
      const code = await getCode({ ...EVERYTHING, simulate })
      assert.match((await exchange(code, {})).json().error_description, /code_verifier is missing/, simulate)
      const issued = (await exchange(code)).json()
      assert.equal(issued.expires_in, stack.settings.accessTokenTtlSeconds, simulate)
      assert.match(issued.smart_style_url, /\/smart-style\//)
      assert.equal(decodeClaims(issued.access_token).simulate, undefined)
      assert.equal((await readPatient(issued.access_token)).status, 200, simulate)
      const form = { grant_type: 'refresh_token', refresh_token: issued.refresh_token }
      assert.equal((await requestToken(form)).statusCode, 200, simulate)
    }
  })
})

/** Prints the modules of the lab that a process loads. */
const PRINT_LAB = `--import=data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module'
  registerHooks({
    load(url, context, next) {
      if (url.includes('/auth/lab/')) process.stderr.write('loaded ' + url + '\\n')
      return next(url, context)
    },
  })`)}`

describe('sallyport start', () => {
  it('loads the lab, adds its routes and lets requests fail as their tokens say, only if the setting is on (LAB-2)', async () => {
    const place = await newPlace({ SMART_SAMPLE_PATIENTS: '1', NODE_OPTIONS: PRINT_LAB })
    const seen = []
    try {
      for (const SMART_LAB of ['false', 'true']) {
        const started = startProcess(['start'], { ...place, env: { ...place.env, SMART_LAB } })
        await started.printed(/is running/)
        const token = await signToken(place, { simulate: 'fhir:403' })
        const headers = { authorization: `Bearer ${token}` }
        const { status } = await fetch(`${place.fhirUrl}/Patient/${PATIENT}`, { headers })
        const route = await fetch(`${place.authUrl}/lab/launch`)
        seen.push([SMART_LAB, status, route.status, /loaded .*auth\/lab/.test(started.stderr())])
        started.child.kill('SIGTERM')
        await started.ended()
      }
    } finally {
      place.remove()
    }
    assert.deepEqual(seen, [
      ['false', 200, 404, false],
      ['true', 403, 400, true],
    ])
  })
})

/** Signs a token of a backend service with the key of the auth server, as only the auth server can. */
async function signToken({ env, folder, authUrl, fhirUrl }: Place, more: Claims): Promise<string> {
  const settings = readSettings(env, folder)
  const store = await openStore(settings.databaseUrl)
  const sealer = createSealer(ensureSecret(settings))
  const key = await createKeyRing({ store, sealer, clock: Date.now, publishedForMs: 0 }).getSigningKey()
  await store.close()
  const now = Math.floor(Date.now() / 1000)
  return signOwnJwt(key, 'at+jwt', {
    iss: authUrl,
    aud: fhirUrl,
    client_id: 'service',
    sub: 'service',
    jti: 'client-x.1',
    scope: 'system/Patient.rs',
    iat: now,
    exp: now + 300,
    ...more,
  })
}
