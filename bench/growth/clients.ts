/** Requests to the auth server with many registered clients, and ten times as many clinicians. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { listUsers } from '../../src/auth/admin/accounts/users.ts'
import { SigningClient } from '../../src/auth/testing/signing-client.ts'
import { TestAuthServer } from '../../src/auth/testing/test-auth-server.ts'
import type { TestBrowser } from '../../src/auth/testing/test-browser.ts'
import { openStore, type Store } from '../../src/store/index.ts'
import type { Request, Subject } from './measure.ts'

const CLINICIANS_PER_CLIENT = 10
const ROWS_AT_ONCE = 500
const ORIGIN = 'https://app-7.example'

export const subject: Subject = {
  size: 10_000,
  limit: 1.5,
  async open(size, folder) {
    const file = join(folder, `clients-${size}.db`)
    const isNew = !existsSync(file)
    const store = await openStore(`sqlite:${file}`)
    const auth = await TestAuthServer.open(store)
    const backend = new SigningClient('backend', auth.time, 'RS384')
    if (isNew) {
      const keys = { auth_method: 'private_key_jwt', jwks: backend.jwks } as const
      await auth.addClient({ client_id: backend.id, scope: 'system/*.rs', ...keys })
      await auth.addUser('administrator', { admin: true })
      await fill(store, size)
    } else {
      await store.db
        .updateTable('client')
        .set({ jwks: backend.jwks })
        .where('client_id', '=', backend.id)
        .execute()
    }
    const administrator = await auth.logIn('administrator')
    const listAccounts = () =>
      listUsers({ store, clock: () => auth.time.now, rules: auth.rules }, { kind: 'account', limit: 20 })
    const browser = await auth.logIn('clinician-7')
    const requestBackendToken = async () => {
      const form = { grant_type: 'client_credentials', scope: 'system/*.rs', ...backend.makeProof() }
      assert.equal((await auth.requestToken(form)).statusCode, 200)
    }
    // The first request loads the keys.
    await requestBackendToken()
    const { app } = auth
    return {
      requests: {
        'CORS preflight': {
          async send() {
            const headers = { origin: ORIGIN, 'access-control-request-method': 'POST' }
            const response = await app.inject({ method: 'OPTIONS', url: '/oauth2/token', headers })
            assert.equal(response.headers['access-control-allow-origin'], ORIGIN)
          },
        },
        'CORS preflight of an unknown origin': {
          async send() {
            const headers = { origin: 'https://other.example' }
            const response = await app.inject({ method: 'OPTIONS', url: '/oauth2/token', headers })
            assert.equal(response.headers['access-control-allow-origin'], undefined)
          },
        },
        client_credentials: {
          send: requestBackendToken,
        },
        'launch and code exchange': {
          async send() {
            assert.equal((await auth.exchange(await auth.getCode(browser))).statusCode, 200)
          },
        },
        login: {
          async send() {
            assert.equal((await auth.openBrowser().login('clinician-7')).statusCode, 302)
          },
        },
        'page of own apps': createPageRequest(browser, '/manage'),
        portal: createPageRequest(browser, '/portal'),
        'portal, one patient': createPageRequest(browser, '/portal?patient=juniper'),
        // Reads the names of all apps.
        'portal, apps by name': {
          ...createPageRequest(browser, '/portal?patient=juniper&app=App+77'),
          limit: 3,
        },
        'users, for administrators': createPageRequest(administrator, '/admin/clinicians'),
        'one user': createPageRequest(administrator, `/admin/clinicians/${await findUserId(store)}`),
        'apps, for administrators': createPageRequest(administrator, '/admin/apps'),
        'audit trail, for administrators': createPageRequest(administrator, '/admin/audit'),
        // Read the names of all users or apps.
        'users by a name that none has': allowLinear(
          createPageRequest(administrator, '/admin/clinicians?search=nobody'),
        ),
        'apps by a name that none has': allowLinear(
          createPageRequest(administrator, '/admin/apps?search=nothing'),
        ),
        'accounts of patients, which are none': allowLinear({
          async send() {
            assert.deepEqual((await listAccounts()).items, [])
          },
        }),
      },
      async close() {
        await app.close()
        await store.close()
      },
    }
  },
}

function allowLinear(request: Request): Request {
  return { ...request, isLinear: true }
}

async function findUserId({ db }: Store): Promise<string> {
  const { id } = await db
    .selectFrom('clinician')
    .select('id')
    .where('username', '=', 'clinician-7')
    .executeTakeFirstOrThrow()
  return id
}

/** The response includes the content security policy, which names origins of apps. */
function createPageRequest(browser: TestBrowser, url: string): Request {
  const get = async () => {
    const response = await browser.get(url)
    assert.equal(response.statusCode, 200)
    return response
  }
  return {
    async send() {
      await get()
    },
    async measureSize() {
      const { headers, body } = await get()
      return JSON.stringify(headers).length + body.length
    },
  }
}

async function fill(store: Store, clients: number): Promise<void> {
  const { password_hash } = await store.db
    .selectFrom('clinician')
    .select('password_hash')
    .executeTakeFirstOrThrow()
  await store.db.transaction().execute(async trx => {
    for (const some of chunk(clients)) {
      const rows = some.map(at => ({ client_id: `app-${at}`, ...makeClient(at) }))
      await trx.insertInto('client').values(rows).execute()
      const origins = some.map(at => ({ client_id: `app-${at}`, origin: `https://app-${at}.example` }))
      await trx.insertInto('client_origin').values(origins).execute()
    }
    for (const some of chunk(clients * CLINICIANS_PER_CLIENT))
      await trx
        .insertInto('clinician')
        .values(some.map(at => ({ username: `clinician-${at}`, password_hash, ...makeUser(at) })))
        .execute()
  })
}

function makeClient(at: number) {
  return {
    name: `App ${at}`,
    description: null,
    logo_url: null,
    auth_method: 'none' as const,
    secret_hash: null,
    jwks: null,
    jwks_url: null,
    scope: 'launch openid patient/*.rs',
    redirect_uris: JSON.stringify([`https://app-${at}.example/callback`]),
    launch_url: `https://app-${at}.example/launch`,
    first_party: false,
    created_at: at,
  }
}

function makeUser(at: number) {
  return { display_name: `Dr. Number ${at}`, fhir_user_id: `practitioner-${at}` }
}

function* chunk(count: number): Generator<readonly number[]> {
  for (let from = 0; from < count; from += ROWS_AT_ONCE)
    yield Array.from({ length: Math.min(ROWS_AT_ONCE, count - from) }, (_, at) => from + at)
}
