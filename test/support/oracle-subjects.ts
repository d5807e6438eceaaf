import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { SigningClient } from '../../src/auth/testing/signing-client.ts'
import { computeChallenge, TestAuthServer, VERIFIER } from '../../src/auth/testing/test-auth-server.ts'
import { openTestStore } from '../../src/auth/testing/test-store.ts'
import { sha256 } from '../../src/store/index.ts'
import { listen } from '../../src/web/http/index.ts'
import { freePorts } from './free-ports.ts'
import { CALLBACK, type Oracle, startOracle } from './oidc-oracle.ts'

export type Form = Readonly<Record<string, string>>

/** A server under the same questions. */
export interface Subject {
  readonly issuer: string
  readonly paths: Readonly<Record<'authorize' | 'token' | 'introspect' | 'revoke' | 'userinfo', string>>
  code(clientId?: string): Promise<string>
}

export const SCOPE = 'openid offline_access patient/*.rs'
const time = {
  get now() {
    return Date.now()
  },
}
export const keyed = new SigningClient('keyed', time)
export const BASIC = {
  authorization: `Basic ${Buffer.from('secret:s3cret-s3cret-s3cret').toString('base64')}`,
}

let oracle: Oracle
let auth: TestAuthServer
let subjects: readonly [ours: Subject, theirs: Subject]

/** Starts both servers for the tests of the file that calls it. */
export function useSubjects(): void {
  const open = openTestStore()
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
    auth = await TestAuthServer.open(await open(), { settings: { issuerUrl: issuer } })
    auth.time.now = Date.now()
    const redirect_uris = JSON.stringify([CALLBACK])
    for (const id of ['app', 'other']) await auth.addClient({ client_id: id, redirect_uris })
    const secret_hash = sha256('s3cret-s3cret-s3cret')
    await auth.addClient({ client_id: 'secret', auth_method: 'client_secret', secret_hash, redirect_uris })
    await auth.addClient({
      client_id: 'keyed',
      auth_method: 'private_key_jwt',
      jwks: keyed.jwks,
      scope: 'system/*.rs',
      redirect_uris: '[]',
    })
    await listen(auth.app, port, ['127.0.0.1'])
    subjects = [ourSubject(issuer), theirSubject()]
  })
  after(async () => {
    await oracle?.close()
    await auth?.app.close()
  })
}

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
      auth.getCode(await auth.logIn(), {
        client_id: clientId,
        redirect_uri: CALLBACK,
        nonce: undefined,
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
    code: (clientId = 'app') => oracle.code(clientId, computeChallenge(VERIFIER), SCOPE),
  }
}

/** The parts of a response that are compared. */
export interface TestReply {
  readonly status: number
  readonly error?: unknown
  readonly members?: readonly string[]
}

export async function readReply(response: Response): Promise<TestReply> {
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

// Each server has further members, which RFC 6749, 5.1 and RFC 7662, 2.2 allow.
const SHARED: ReadonlySet<string> = new Set(
  'access_token token_type expires_in scope refresh_token id_token active client_id exp iat iss sub'.split(
    ' ',
  ),
)

export const post = (subject: Subject, path: keyof Subject['paths'], form: Form, headers: Form = {}) =>
  fetch(subject.issuer + subject.paths[path], { method: 'POST', body: new URLSearchParams(form), headers })

export const codeForm = (code: string, different: Form = {}): Form => ({
  grant_type: 'authorization_code',
  code,
  client_id: 'app',
  redirect_uri: CALLBACK,
  code_verifier: VERIFIER,
  ...different,
})
export const without = (form: Form, name: string): Form =>
  Object.fromEntries(Object.entries(form).filter(([key]) => key !== name))

interface Case {
  readonly act: (subject: Subject) => Promise<TestReply>
  /** A difference: our reply, and the reason. */
  readonly but?: { readonly reply: TestReply; readonly why: string }
}

/** Sends a request to both servers and returns the differences. The file calls `useSubjects` first. */
export function compare(cases: Readonly<Record<string, Case>>): void {
  for (const [name, { act, but }] of Object.entries(cases))
    it(`${name}${but ? ` (differs: ${but.why})` : ''}`, async () => {
      const [ours, theirs] = [await act(subjects[0]), await act(subjects[1])]
      if (but) assert.notDeepEqual(ours, theirs, 'no longer differs: take the explanation away')
      assert.deepEqual(ours, but ? but.reply : theirs)
    })
}
