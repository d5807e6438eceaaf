import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { StatementSync } from 'node:sqlite'
import { after, before, describe, it } from 'node:test'
import { readForm } from '../src/auth/testing/read-form.ts'
import { SigningClient } from '../src/auth/testing/signing-client.ts'
import { computeChallenge, VERIFIER } from '../src/auth/testing/test-auth-server.ts'
import { HttpUser } from './support/http-user.ts'
import { type Stack, startStack } from './support/stack.ts'

/**
 * What each step does: HTTP requests to our servers, the one of the browser included, and SQL statements. A step that does
 * more than before fails here. If it has to, change the numbers, and compare the CPU time (`npm run bench -- --against release`).
 */
interface Work {
  readonly requests: number
  readonly statements: number
}

/**
 * Transactions begin and end by groups, audit records are moved to the trail by the clock, and a search reads each resource
 * that it found by a statement of its own.
 */
const UNCOUNTED =
  /^(?:begin|commit|savepoint|release|rollback|delete from audit_waiting|insert into audit_event \(|select max\(id\)|select group_concat|SELECT tid, id, version, content FROM resource WHERE rid)/i

const METHODS = (['run', 'all', 'get', 'iterate'] as const).map(
  name => [name, StatementSync.prototype[name]] as const,
)
const REQUEST = 'http.server.request.start'
let statements: string[] = []
let requests = 0
const countRequest = () => void requests++

async function measure(act: () => Promise<unknown>): Promise<Work> {
  statements = []
  requests = 0
  await act()
  return { requests, statements: statements.filter(text => !UNCOUNTED.test(text)).length }
}

const CALLBACK = 'https://counted.example/callback'
const SCOPE = 'launch/patient openid fhirUser offline_access patient/Patient.rs patient/Observation.rs'

describe('the work of a request', () => {
  let stack: Stack
  let user: HttpUser
  let login = ''
  let backEnd: SigningClient
  let clientId = ''
  let text = ''
  let url = ''

  /** One request of the browser. Its next one goes where this one was redirected to. */
  async function go(to = url, form?: Iterable<readonly [string, string]>): Promise<void> {
    const init = form && { method: 'POST', body: new URLSearchParams(Array.from(form, pair => [...pair])) }
    const response = await user.request(to, init)
    text = await response.text()
    const location = response.headers.get('location')
    assert.equal(response.status < 400, true, `${response.status} ${text}`)
    url = location === null ? to : new URL(location, to).href
  }

  async function askToken(form: Readonly<Record<string, string>>): Promise<void> {
    const body = new URLSearchParams(form)
    const response = await fetch(`${stack.settings.issuerUrl}/oauth2/token`, { method: 'POST', body })
    text = await response.text()
    assert.equal(response.status, 200, text)
  }

  /** In a browser without a session of the app: its page asks the auth server about every other session. */
  const launch = (): Promise<Steps> => {
    user = new HttpUser(stack, login)
    return measureSteps({
      portal: () => go(`${stack.settings.issuerUrl}/portal/launch`, [['patientId', 'patient-1']]),
      'launch URL of the app': go,
      authorize: go,
      callback: go,
      'page of the app': go,
    })
  }

  const authorize = (): Promise<Steps> => {
    const { issuerUrl, fhirBaseUrl } = stack.settings
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: CALLBACK,
      scope: SCOPE,
      state: 's',
      aud: fhirBaseUrl,
      code_challenge: computeChallenge(VERIFIER),
      code_challenge_method: 'S256',
    })
    return measureSteps({
      authorize: () => go(`${issuerUrl}/oauth2/authorize?${query}`),
      picker: go,
      picked: () => go(`${issuerUrl}/oauth2/pick`, [...readForm(text), ['patientId', 'patient-1']]),
      'consent page': go,
      code: () => go(`${issuerUrl}/oauth2/consent`, [...readForm(text), ['decision', 'allow']]),
    })
  }

  const exchange = () =>
    askToken({
      grant_type: 'authorization_code',
      code: new URL(url).searchParams.get('code') ?? '',
      client_id: clientId,
      redirect_uri: CALLBACK,
      code_verifier: VERIFIER,
    })
  const refresh = () =>
    askToken({
      grant_type: 'refresh_token',
      refresh_token: JSON.parse(text).refresh_token,
      client_id: clientId,
    })
  const askForBackEnd = () =>
    askToken({
      grant_type: 'client_credentials',
      scope: 'system/Patient.rs',
      ...backEnd.makeProof({ aud: `${stack.settings.issuerUrl}/oauth2/token` }),
    })

  before(async () => {
    stack = await startStack()
    user = new HttpUser(stack)
    await user.signIn()
    login = user.cookie
    clientId = await register({ redirect_uris: [CALLBACK], token_endpoint_auth_method: 'none', scope: SCOPE })
    const id = await register({
      token_endpoint_auth_method: 'private_key_jwt',
      grant_types: ['client_credentials'],
      jwks: { keys: [new SigningClient('', realTime).jwk] },
      scope: 'system/*.rs',
    })
    backEnd = new SigningClient(id, realTime)
    for (const [name, method] of METHODS)
      StatementSync.prototype[name] = function (this: StatementSync, ...values: never[]) {
        statements.push(this.sourceSQL)
        return Reflect.apply(method, this, values)
      } as never
    subscribe(REQUEST, countRequest)
    // The first ones also read keys and metadata.
    for (let at = 0; at < 2; at++) {
      await launch()
      await authorize()
      await exchange()
      await refresh()
      await askForBackEnd()
    }
  })

  async function register(metadata: object): Promise<string> {
    const response = await fetch(`${stack.settings.issuerUrl}/oauth2/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_name: 'Counted', ...metadata }),
    })
    const body = await response.json()
    assert.equal(response.status, 201, JSON.stringify(body))
    return body.client_id
  }

  after(async () => {
    for (const [name, method] of METHODS) StatementSync.prototype[name] = method as never
    unsubscribe(REQUEST, countRequest)
    await stack.close()
  })

  it('of a launch is what it was', async () => {
    assert.deepEqual(await takeLeast(launch), {
      portal: { requests: 3, statements: 16 },
      'launch URL of the app': { requests: 1, statements: 3 },
      authorize: { requests: 1, statements: 10 },
      callback: { requests: 2, statements: 11 },
      'page of the app': { requests: 6, statements: 21 },
    })
  })

  it('of an authorization is what it was', async () => {
    assert.deepEqual(await takeLeast(authorize), {
      authorize: { requests: 1, statements: 3 },
      picker: { requests: 3, statements: 14 },
      picked: { requests: 2, statements: 9 },
      'consent page': { requests: 3, statements: 11 },
      code: { requests: 1, statements: 10 },
    })
  })

  it('of a token request is what it was', async () => {
    const tokens = async () => {
      await authorize()
      return measureSteps({ code: exchange, refresh, client_credentials: askForBackEnd })
    }
    assert.deepEqual(await takeLeast(tokens), {
      code: { requests: 1, statements: 7 },
      refresh: { requests: 1, statements: 7 },
      client_credentials: { requests: 1, statements: 3 },
    })
  })
})

const realTime = {
  get now() {
    return Date.now()
  },
}

type Steps = Readonly<Record<string, Work>>

async function measureSteps(steps: Readonly<Record<string, () => Promise<void>>>): Promise<Steps> {
  const work: Record<string, Work> = {}
  for (const [name, act] of Object.entries(steps)) work[name] = await measure(act)
  return work
}

/** Of several attempts: the FHIR server fetches revocations by the clock, and that must not count. */
async function takeLeast(attempt: () => Promise<Steps>): Promise<Steps> {
  const [first, ...others] = [await attempt(), await attempt(), await attempt(), await attempt()]
  const least = (step: string, of: keyof Work) =>
    Math.min(...[first, ...others].map(steps => steps[step]?.[of] ?? 0))
  return Object.fromEntries(
    Object.keys(first).map(step => [
      step,
      { requests: least(step, 'requests'), statements: least(step, 'statements') },
    ]),
  )
}
