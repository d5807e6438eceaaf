/**
 * The same requests to our auth server and to `oidc-provider`, wherever both claim the behaviour. What they answer is
 * compared as status, OAuth error and members; where they differ, the case says why.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { AuthHouse, challengeOf, VERIFIER } from '../src/auth/testing/auth-house.ts'
import { oneStore } from '../src/auth/testing/one-store.ts'
import { SigningClient } from '../src/auth/testing/signing-client.ts'
import { sha256 } from '../src/store/index.ts'
import { listen } from '../src/web/index.ts'
import { freePorts } from './support/free-ports.ts'
import { CALLBACK, type Oracle, startOracle } from './support/oidc-oracle.ts'

type Form = Readonly<Record<string, string>>

/** A server under the same questions. */
interface Subject {
  readonly issuer: string
  readonly paths: Readonly<Record<'authorize' | 'token' | 'introspect' | 'revoke' | 'userinfo', string>>
  code(clientId?: string): Promise<string>
}

const SCOPE = 'openid offline_access patient/*.rs'
const time = {
  get now() {
    return Date.now()
  },
}
const keyed = new SigningClient('keyed', time)
const BASIC = { authorization: `Basic ${Buffer.from('secret:s3cret-s3cret-s3cret').toString('base64')}` }

const open = oneStore()
let oracle: Oracle
let house: AuthHouse
let subjects: readonly [ours: Subject, theirs: Subject]

before(async () => {
  const app = ['authorization_code', 'refresh_token']
  oracle = await startOracle([
    { client_id: 'app', token_endpoint_auth_method: 'none', grant_types: app },
    { client_id: 'other', token_endpoint_auth_method: 'none', grant_types: app },
    {
      client_id: 'secret',
      token_endpoint_auth_method: 'client_secret_basic',
      client_secret: 's3cret-s3cret-s3cret',
      grant_types: app,
    },
    {
      client_id: 'keyed',
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: { keys: [keyed.jwk] },
      grant_types: ['client_credentials'],
    },
  ])
  const [port = 0] = await freePorts(1)
  const issuer = `http://localhost:${port}`
  house = await AuthHouse.open(await open(), { settings: { issuerUrl: issuer } })
  house.time.now = Date.now()
  const redirect_uris = JSON.stringify([CALLBACK])
  for (const id of ['app', 'other']) await house.addClient({ client_id: id, redirect_uris })
  const secret_hash = sha256('s3cret-s3cret-s3cret')
  await house.addClient({ client_id: 'secret', auth_method: 'client_secret', secret_hash, redirect_uris })
  await house.addClient({
    ...{ client_id: 'keyed', auth_method: 'private_key_jwt', jwks: keyed.jwks, scope: 'system/*.rs' },
    redirect_uris: '[]',
  })
  await listen(house.app, port, ['127.0.0.1'])
  subjects = [ourSubject(issuer), theirSubject()]
})
after(async () => {
  await oracle?.close()
  await house?.app.close()
})

function ourSubject(issuer: string): Subject {
  return {
    issuer,
    paths: {
      authorize: '/oauth2/authorize',
      token: '/oauth2/token',
      introspect: '/oauth2/introspect',
      revoke: '/oauth2/revoke',
      userinfo: '/oauth2/userinfo',
    },
    code: async (clientId = 'app') =>
      house.code(await house.loggedIn(), {
        ...{ client_id: clientId, redirect_uri: CALLBACK, nonce: undefined },
        scope: `launch ${SCOPE}`,
      }),
  }
}

function theirSubject(): Subject {
  return {
    issuer: oracle.issuer,
    paths: {
      authorize: '/auth',
      token: '/token',
      introspect: '/token/introspection',
      revoke: '/token/revocation',
      userinfo: '/me',
    },
    code: (clientId = 'app') => oracle.code(clientId, challengeOf(VERIFIER), SCOPE),
  }
}

/** What of an answer is compared. */
interface Told {
  readonly status: number
  readonly error?: unknown
  readonly members?: readonly string[]
}

async function told(response: Response): Promise<Told> {
  const text = await response.text()
  const type = response.headers.get('content-type') ?? ''
  if (!type.includes('json') || text === '') return { status: response.status }
  const body = JSON.parse(text) as Record<string, unknown>
  if ('error' in body) return { status: response.status, error: body.error }
  return {
    status: response.status,
    members: Object.keys(body)
      .filter(name => SHARED.has(name))
      .sort(),
  }
}

// Beside these each server has members of its own, which RFC 6749, 5.1 and RFC 7662, 2.2 allow.
const SHARED: ReadonlySet<string> = new Set(
  'access_token token_type expires_in scope refresh_token id_token active client_id exp iat iss sub'.split(
    ' ',
  ),
)

const post = (subject: Subject, path: keyof Subject['paths'], form: Form, headers: Form = {}) =>
  fetch(subject.issuer + subject.paths[path], { method: 'POST', body: new URLSearchParams(form), headers })

const codeForm = (code: string, different: Form = {}): Form => ({
  ...{
    grant_type: 'authorization_code',
    code,
    client_id: 'app',
    redirect_uri: CALLBACK,
    code_verifier: VERIFIER,
  },
  ...different,
})
const without = (form: Form, name: string): Form =>
  Object.fromEntries(Object.entries(form).filter(([key]) => key !== name))

interface Case {
  readonly act: (subject: Subject) => Promise<Told>
  /** Where we differ: what we answer, and why. */
  readonly but?: { readonly told: Told; readonly why: string }
}

function compare(cases: Readonly<Record<string, Case>>): void {
  for (const [name, { act, but }] of Object.entries(cases))
    it(`${name}${but ? ` (differs: ${but.why})` : ''}`, async () => {
      const [ours, theirs] = [await act(subjects[0]), await act(subjects[1])]
      if (but) assert.notDeepEqual(ours, theirs, 'no longer differs: take the explanation away')
      assert.deepEqual(ours, but ? but.told : theirs)
    })
}

describe('authorization endpoint', () => {
  const ask =
    (different: Readonly<Record<string, string | undefined>>, extra = '') =>
    async (subject: Subject): Promise<Told> => {
      const all: Record<string, string | undefined> = {
        ...{ response_type: 'code', client_id: 'app', redirect_uri: CALLBACK, scope: SCOPE, state: 's' },
        ...{ code_challenge: challengeOf(VERIFIER), code_challenge_method: 'S256' },
        aud: 'http://localhost:8080/fhir',
        ...different,
      }
      const given = Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== undefined)
      const url = `${subject.issuer}${subject.paths.authorize}?${new URLSearchParams(given)}${extra}`
      const response = await fetch(url, { redirect: 'manual' })
      await response.arrayBuffer()
      const location = response.headers.get('location')
      if (!location?.startsWith(CALLBACK)) return { status: response.status >= 400 ? 400 : 300 }
      const { searchParams, hash } = new URL(location)
      // It answers what asks for tokens in the fragment, as such a client would read it.
      const answer = searchParams.has('error') ? searchParams : new URLSearchParams(hash.slice(1))
      assert.equal(answer.get('state'), 's')
      assert.equal(answer.get('iss'), subject.issuer)
      return { status: 300, error: answer.get('error') }
    }

  compare({
    'a right request goes on to a page': { act: ask({}) },
    'an unknown client is never redirected': { act: ask({ client_id: 'nobody' }) },
    'no client is never redirected': { act: ask({ client_id: undefined }) },
    'an unregistered address is never redirected': { act: ask({ redirect_uri: 'https://evil.example/' }) },
    'a longer address is never redirected': { act: ask({ redirect_uri: `${CALLBACK}/x` }) },
    'an address with a query is never redirected': { act: ask({ redirect_uri: `${CALLBACK}?x=1` }) },
    'no response_type': { act: ask({ response_type: undefined }) },
    'response_type token': { act: ask({ response_type: 'token' }) },
    'no code_challenge': { act: ask({ code_challenge: undefined }) },
    'code_challenge without method': { act: ask({ code_challenge_method: undefined }) },
    'code_challenge_method plain': { act: ask({ code_challenge_method: 'plain' }) },
    'code_challenge_method unknown': { act: ask({ code_challenge_method: 'S512' }) },
    'a code_challenge that is too short': { act: ask({ code_challenge: 'abc' }) },
    'prompt none without a login': { act: ask({ prompt: 'none' }) },
    'prompt none with another': { act: ask({ prompt: 'none login' }) },
    'an unknown prompt': { act: ask({ prompt: 'dance' }) },
    'a negative max_age': { act: ask({ max_age: '-1' }) },
    'max_age that is no number': { act: ask({ max_age: 'soon' }) },
    'a request object': { act: ask({ request: 'e30.e30.' }) },
    'a request address': { act: ask({ request_uri: 'https://app.example/request' }) },
    'an id_token_hint of somebody else': { act: ask({ id_token_hint: 'e30.e30.AAAA' }) },
    'a scope that comes twice': { act: ask({}, '&scope=openid') },
  })
})

describe('token endpoint', () => {
  const ask =
    (form: Form, headers: Form = {}) =>
    async (subject: Subject) =>
      told(await post(subject, 'token', form, headers))
  const exchange =
    (different: Form = {}, headers: Form = {}, leave = '') =>
    async (subject: Subject) =>
      told(await post(subject, 'token', without(codeForm(await subject.code(), different), leave), headers))

  compare({
    'a right code': { act: exchange() },
    'a code for a client with a secret': {
      act: async subject => {
        const form = without(codeForm(await subject.code('secret')), 'client_id')
        return told(await post(subject, 'token', form, BASIC))
      },
    },
    'a wrong verifier': { act: exchange({ code_verifier: `${VERIFIER}x` }) },
    'the challenge as verifier': { act: exchange({ code_verifier: challengeOf(VERIFIER) }) },
    'no verifier': {
      act: exchange({}, {}, 'code_verifier'),
      but: {
        told: { status: 400, error: 'invalid_request' },
        why: 'a missing parameter is invalid_request (RFC 6749, 5.2)',
      },
    },
    'another redirect_uri': { act: exchange({ redirect_uri: `${CALLBACK}/` }) },
    'no redirect_uri': {
      act: exchange({}, {}, 'redirect_uri'),
      but: {
        told: { status: 400, error: 'invalid_request' },
        why: 'SMART requires it at the token endpoint, however many are registered',
      },
    },
    'no code': { act: exchange({}, {}, 'code') },
    'an unknown code': { act: ask(codeForm('unknown')) },
    'a code of another client': { act: exchange({ client_id: 'other' }) },
    'a code that was used': {
      act: async subject => {
        const form = codeForm(await subject.code())
        await post(subject, 'token', form)
        return told(await post(subject, 'token', form))
      },
    },
    'a refresh token after its code was used twice': {
      act: async subject => {
        const form = codeForm(await subject.code())
        const { refresh_token: token = '' } = (await (await post(subject, 'token', form)).json()) as Form
        await (await post(subject, 'token', form)).arrayBuffer()
        return told(
          await post(subject, 'token', {
            grant_type: 'refresh_token',
            refresh_token: token,
            client_id: 'app',
          }),
        )
      },
    },
    'no grant_type': { act: ask({ client_id: 'app' }) },
    'an unknown grant_type': { act: ask({ grant_type: 'password', client_id: 'app' }) },
    'no client': {
      act: ask(without(codeForm('x'), 'client_id')),
      but: {
        told: { status: 401, error: 'invalid_client' },
        why: 'a client that is not named did not authenticate (RFC 6749, 5.2)',
      },
    },
    'an unknown client': { act: ask(codeForm('x', { client_id: 'nobody' })) },
    'a wrong secret': {
      act: ask(without(codeForm('x'), 'client_id'), {
        authorization: `Basic ${Buffer.from('secret:x').toString('base64')}`,
      }),
    },
    'no secret': { act: ask(codeForm('x', { client_id: 'secret' })) },
    'two methods': { act: ask({ ...codeForm('x', { client_id: 'secret' }), client_secret: 'x' }, BASIC) },
    'a body in JSON': {
      act: async subject =>
        told(
          await fetch(subject.issuer + subject.paths.token, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(codeForm('x')),
          }),
        ),
    },
    'an unknown refresh token': {
      act: ask({ grant_type: 'refresh_token', refresh_token: 'x', client_id: 'app' }),
    },
    'no refresh token': { act: ask({ grant_type: 'refresh_token', client_id: 'app' }) },
  })
})

describe('refresh', () => {
  const bought = async (subject: Subject) =>
    (await (await post(subject, 'token', codeForm(await subject.code()))).json()) as Form
  const refresh = async (subject: Subject, token = '', different: Form = {}) =>
    post(subject, 'token', {
      grant_type: 'refresh_token',
      refresh_token: token,
      client_id: 'app',
      ...different,
    })

  compare({
    'a right one': {
      act: async subject => told(await refresh(subject, (await bought(subject)).refresh_token)),
    },
    'with fewer scopes': {
      act: async subject =>
        told(await refresh(subject, (await bought(subject)).refresh_token, { scope: 'openid' })),
    },
    'with more scopes': {
      act: async subject =>
        told(await refresh(subject, (await bought(subject)).refresh_token, { scope: 'openid system/*.rs' })),
    },
    'by another client': {
      act: async subject =>
        told(await refresh(subject, (await bought(subject)).refresh_token, { client_id: 'other' })),
    },
    'with the token of before, at once': {
      act: async subject => {
        const { refresh_token: token } = await bought(subject)
        await (await refresh(subject, token)).arrayBuffer()
        return told(await refresh(subject, token))
      },
      but: {
        told: {
          status: 200,
          members: ['access_token', 'expires_in', 'id_token', 'refresh_token', 'scope', 'token_type'],
        },
        why: 'a lost response may be asked for again within 10 s and gets the same successor',
      },
    },
    'with the token of before, after its successor was used': {
      act: async subject => {
        const { refresh_token: token } = await bought(subject)
        const { refresh_token: next } = (await (await refresh(subject, token)).json()) as Form
        await (await refresh(subject, next)).arrayBuffer()
        return told(await refresh(subject, token))
      },
    },
  })
})

describe('private_key_jwt and client_credentials', () => {
  const ask =
    (
      claims: Readonly<Record<string, unknown>>,
      header: Readonly<Record<string, unknown>> = {},
      form: Form = {},
    ) =>
    async (subject: Subject) => {
      const proof = keyed.proof({ aud: subject.issuer, ...claims }, header)
      return told(
        await post(subject, 'token', {
          grant_type: 'client_credentials',
          scope: 'system/*.rs',
          ...proof,
          ...form,
        }),
      )
    }
  const seconds = Math.floor(Date.now() / 1000)

  compare({
    'a right assertion': { act: ask({}) },
    'aud of another server': { act: ask({ aud: 'https://other.example' }) },
    'an assertion that is over': { act: ask({ exp: seconds - 100 }) },
    'no exp': { act: ask({ exp: undefined }) },
    'no jti': { act: ask({ jti: undefined }) },
    'another sub': { act: ask({ sub: 'app' }) },
    'another iss': { act: ask({ iss: 'app' }) },
    'an unknown kid': { act: ask({}, { kid: 'nobody' }) },
    'alg none': { act: ask({}, { alg: 'none' }) },
    'alg HS256': { act: ask({}, { alg: 'HS256' }) },
    'an assertion of no form': {
      act: ask({}, {}, { client_assertion: 'nonsense' }),
      but: {
        told: { status: 401, error: 'invalid_client' },
        why: 'SMART: whatever is wrong with an assertion is invalid_client',
      },
    },
    'an assertion that was used': {
      act: async subject => {
        const proof = keyed.proof({ aud: subject.issuer })
        const form = { grant_type: 'client_credentials', scope: 'system/*.rs', ...proof }
        await (await post(subject, 'token', form)).arrayBuffer()
        return told(await post(subject, 'token', form))
      },
    },
    'a public client': {
      act: async subject =>
        told(
          await post(subject, 'token', {
            grant_type: 'client_credentials',
            client_id: 'app',
            scope: 'system/*.rs',
          }),
        ),
      but: {
        told: { status: 400, error: 'unauthorized_client' },
        why: 'the client may not use this grant type (RFC 6749, 5.2)',
      },
    },
  })
})

describe('introspection, revocation and userinfo', () => {
  const bought = async (subject: Subject) => {
    const form = without(codeForm(await subject.code('secret')), 'client_id')
    return (await (await post(subject, 'token', form, BASIC)).json()) as Form
  }
  const refreshed = async (subject: Subject, token = '') =>
    told(await post(subject, 'token', { grant_type: 'refresh_token', refresh_token: token }, BASIC))
  const userinfo = (subject: Subject, headers: Form) =>
    fetch(subject.issuer + subject.paths.userinfo, { headers })

  compare({
    'introspection of its own refresh token': {
      act: async subject =>
        told(
          await post(subject, 'introspect', { token: (await bought(subject)).refresh_token ?? '' }, BASIC),
        ),
    },
    'introspection of an unknown token': {
      act: async subject => told(await post(subject, 'introspect', { token: 'x' }, BASIC)),
    },
    'introspection without a token': {
      act: async subject => told(await post(subject, 'introspect', {}, BASIC)),
    },
    'introspection by nobody known': {
      act: async subject => told(await post(subject, 'introspect', { token: 'x', client_id: 'nobody' })),
    },
    'revocation of an unknown token': {
      act: async subject => told(await post(subject, 'revoke', { token: 'x' }, BASIC)),
    },
    'revocation without a token': { act: async subject => told(await post(subject, 'revoke', {}, BASIC)) },
    'revocation by nobody known': {
      act: async subject => told(await post(subject, 'revoke', { token: 'x', client_id: 'nobody' })),
    },
    'a refresh after its revocation': {
      act: async subject => {
        const { refresh_token: token = '' } = await bought(subject)
        assert.equal((await post(subject, 'revoke', { token }, BASIC)).status, 200)
        return refreshed(subject, token)
      },
    },
    'a refresh after a revocation by another client': {
      act: async subject => {
        const { refresh_token: token = '' } = await bought(subject)
        assert.equal((await post(subject, 'revoke', { token, client_id: 'app' })).status, 200)
        return refreshed(subject, token)
      },
    },
    'userinfo with nonsense': {
      act: async subject => told(await userinfo(subject, { authorization: 'Bearer x' })),
    },
    'userinfo without a token': {
      act: async subject => told(await userinfo(subject, {})),
      but: {
        told: { status: 401, error: 'invalid_request' },
        why: 'a request without token is answered with 401 (RFC 6750, 3)',
      },
    },
  })
})
