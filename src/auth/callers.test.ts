import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { before, describe, it } from 'node:test'
import type { LightMyRequestResponse } from 'fastify'
import { createAuditor, findRecords } from '../audit/index.ts'
import { sha256 } from '../store/index.ts'
import { listRoutes } from '../web/http/index.ts'
import { adminRoutes } from './admin/administration.ts'
import { givesAccess } from './admin/base/action.ts'
import { TestAuthServer } from './testing/test-auth-server.ts'
import { openTestStore } from './testing/test-store.ts'

/** Routes without a login, or that have tests of their own: every other route is below one of the areas. */
const OPEN = new Set(
  `/ /healthz /readyz /metrics /assets/:name /brand/:name /smart-style/:name /lab/launch /admin/api/openapi.json
  /login /login/new-password /login/second-factor /login/enrol /login/passkey /login/activate /login/providers/:id
  /login/callback /login/callback/:id /login/logged-out /login/backchannel-logout /login/state /logout
  /oauth2/authorize /oauth2/resume /oauth2/pick /oauth2/consent /oauth2/logout /oauth2/logout/confirm
  /oauth2/token /oauth2/jwks /oauth2/introspect /oauth2/revoke /oauth2/revocations /oauth2/userinfo /oauth2/register
  /launch-contexts /audit-records /.well-known/openid-configuration /.well-known/oauth-authorization-server
  /.well-known/smart-configuration`.split(/\s+/),
)

/** Actions of administrators that give no access, and need no recent sign-in, unless they are about an administrator (ADMIN-4). */
const WITHOUT_STEP_UP = new Set(
  `/admin/agents/off /admin/policy /admin/providers/:id/test /admin/grants/:id/revoke /admin/apps/:id/disable /admin/apps/:id/remove
  /admin/clinicians/:id/disable /admin/clinicians/:id/end-sessions /admin/clinicians/:id/end-sign-in /admin/clinicians/:id/remove /admin/audit/verify /admin/audit/check-file
  /admin/exports/:id/end`.split(/\s+/),
)

/** Actions that auditors perform too: they read, and are recorded (ADMIN-29). */
const FOR_AUDITORS = new Set([
  '/admin/audit/verify',
  '/admin/audit/check-file',
  '/admin/api/audit/verification',
])

/** Pages that show a form of an action that gives access. */
const FORMS = new Set(
  adminRoutes
    .filter(({ method, operation }) => method === 'GET' && operation && givesAccess(operation))
    .map(({ path }) => `/admin${path}`),
)

/** Pages that show a form of any action. */
const ALL_FORMS = new Set(
  adminRoutes.flatMap(({ method, path, operation }) =>
    method === 'GET' && operation ? [`/admin${path}`] : [],
  ),
)

/** `login`: redirected to the login page; `again`: a recent sign-in is needed; `start`: redirected to the user's own page. */
type Outcome = 'admitted' | 'refused' | 'login' | 'again' | 'start'

type Caller =
  | 'nobody'
  | 'clinician'
  | 'patient'
  | 'related'
  /** An administrator who signed in just now. */
  | 'admin'
  /** A clinician who may see the administration, and change nothing. */
  | 'auditor'
  /** An auditor whose account opens no records (LOGIN-19). */
  | 'officer'
  /** Neither, and the account opens no records. */
  | 'helpdesk'
  /** An administrator who signed in more than five minutes ago. */
  | 'stale'
  /** An administrator who lost this role after the sign-in. */
  | 'former'
  /** An administrator who was disabled after the sign-in. */
  | 'disabled'
  /** A client of the administration API. */
  | 'client'
  /** A client that may only read there (ADMIN-31). */
  | 'reader'

const ALL_USERS: Readonly<Record<Caller, Outcome>> = {
  nobody: 'login',
  clinician: 'admitted',
  patient: 'admitted',
  related: 'admitted',
  admin: 'admitted',
  auditor: 'admitted',
  officer: 'admitted',
  helpdesk: 'admitted',
  stale: 'admitted',
  former: 'admitted',
  disabled: 'login',
  client: 'login',
  reader: 'login',
}
const CLINICIANS = {
  ...ALL_USERS,
  patient: 'start',
  related: 'start',
  officer: 'start',
  helpdesk: 'start',
} as const
const REFUSED = 'refused'

/** Who may use the routes of an area. */
const AREAS: Readonly<Record<string, Readonly<Record<Caller, Outcome>>>> = {
  '/manage': ALL_USERS,
  '/proposals': { ...ALL_USERS, officer: 'start', helpdesk: 'start' },
  '/home': {
    ...ALL_USERS,
    clinician: 'start',
    admin: 'start',
    auditor: 'start',
    officer: 'start',
    helpdesk: 'start',
    stale: 'start',
    former: 'start',
  },
  '/account': ALL_USERS,
  '/activity': { ...ALL_USERS, patient: REFUSED, related: REFUSED, officer: REFUSED, helpdesk: REFUSED },
  '/portal': CLINICIANS,
  '/apps': CLINICIANS,
  '/lab': CLINICIANS,
  '/admin': {
    ...ALL_USERS,
    clinician: REFUSED,
    patient: REFUSED,
    related: REFUSED,
    helpdesk: REFUSED,
    former: REFUSED,
  },
  '/admin/api': {
    nobody: REFUSED,
    clinician: REFUSED,
    patient: REFUSED,
    related: REFUSED,
    admin: REFUSED,
    auditor: REFUSED,
    officer: REFUSED,
    helpdesk: REFUSED,
    stale: REFUSED,
    former: REFUSED,
    disabled: REFUSED,
    client: 'admitted',
    reader: 'admitted',
  },
}

interface Route {
  readonly method: string
  readonly path: string
}

/** The longest area that a path is below. */
function findArea(path: string): string | undefined {
  const areas = Object.keys(AREAS).filter(area => `${path}/`.startsWith(`${area}/`))
  return areas.sort((one, other) => other.length - one.length)[0]
}

function findExpected(caller: Caller, { method, path }: Route): Outcome {
  const area = findArea(path) ?? assert.fail(path)
  const expected = AREAS[area]?.[caller] ?? assert.fail(area)
  const asks =
    area === '/admin'
      ? method === 'POST'
        ? !WITHOUT_STEP_UP.has(path)
        : FORMS.has(path)
      : path.startsWith('/account/factors/')
  const isAuditor = caller === 'auditor' || caller === 'officer'
  if ((isAuditor && area === '/admin') || (caller === 'reader' && area === '/admin/api')) {
    const isAction = method !== 'GET' || ALL_FORMS.has(path)
    return isAction && !FOR_AUDITORS.has(path) ? REFUSED : expected
  }
  return caller === 'stale' && asks ? 'again' : expected
}

function readOutcome({ statusCode, headers, body }: LightMyRequestResponse, { path }: Route): Outcome {
  const { location = '' } = headers
  if (location === '/login') return 'login'
  if (location === '/login?prompt=login' && path !== '/admin/sign-in') return 'again'
  if (location === '/home' && !/^\/(?:home|account)/.test(path)) return 'start'
  if (/^\/(?:portal|admin|account)$/.test(location) && /^\/(?:home|portal|proposals|apps|lab)\b/.test(path))
    return 'start'
  if (statusCode !== 401 && statusCode !== 403) return 'admitted'
  return /<h1>Sign in again</.test(body) ? 'again' : 'refused'
}

describe('every route of the auth server', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  const headers = new Map<Caller, Readonly<Record<string, string>>>()

  before(async () => {
    const store = await open()
    auth = await TestAuthServer.open(store, { audit: createAuditor({ store }), settings: { lab: true } })
    await auth.addUser('patient', { fhir_user_id: 'Patient/juniper', admin: true })
    await auth.addUser('related', { fhir_user_id: 'RelatedPerson/r1', auditor: true })
    for (const name of ['admin', 'stale', 'former', 'disabled']) await auth.addUser(name, { admin: true })
    await auth.addUser('auditor', { auditor: true })
    await auth.addUser('officer', { auditor: true, fhir_user_id: '' })
    await auth.addUser('helpdesk', { fhir_user_id: '' })
    await signIn('stale')
    auth.time.now += 301_000
    for (const name of ['clinician', 'patient', 'related', 'admin', 'auditor', 'officer'] as const)
      await signIn(name)
    for (const name of ['helpdesk', 'former', 'disabled'] as const) await signIn(name)
    await change('former', { admin: false })
    await change('disabled', { disabled: true })
    await authenticate('client', 'sallyport/admin')
    await authenticate('reader', 'sallyport/admin.read')
    headers.set('nobody', {})
  })

  const change = (username: string, columns: { admin?: boolean; disabled?: boolean }) =>
    auth.store.db.updateTable('clinician').set(columns).where('username', '=', username).execute()

  async function authenticate(name: 'client' | 'reader', scope: string): Promise<void> {
    const registered = { auth_method: 'client_secret', secret_hash: sha256('s') } as const
    await auth.addClient({ client_id: name, ...registered, scope, redirect_uris: '[]', launch_url: null })
    const client = { client_id: name, client_secret: 's', scope }
    const { access_token } = (await auth.requestToken({ grant_type: 'client_credentials', ...client })).json()
    headers.set(name, { authorization: `Bearer ${access_token}` })
  }

  async function signIn(name: Caller): Promise<void> {
    const { cookies } = await auth.logIn(name)
    headers.set(name, { cookie: [...cookies].map(pair => pair.join('=')).join('; ') })
  }

  const listGuarded = () => listRoutes(auth.app).filter(({ path }) => !OPEN.has(generalize(path)))
  const generalize = (path: string) => path.replace(/^\/smart-style\/.*/, '/smart-style/:name')
  const send = ({ method, path }: Route, caller: Caller, more: Readonly<Record<string, string>> = {}) =>
    auth.app.inject({
      method: method as 'GET',
      url: path.replace(/:\w+/g, 'x'),
      headers: { ...headers.get(caller), ...more },
      ...(method !== 'GET' && { payload: '', headers: { ...headers.get(caller), ...FORM, ...more } }),
    })
  const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
  const readTables = () =>
    Promise.all(
      (['client', 'clinician', 'clinician_link', 'grant', 'signing_key'] as const).map(table =>
        auth.store.db.selectFrom(table).selectAll().execute(),
      ),
    )

  it('has a rule that says who may call it (ADMIN-6)', () => {
    const undecided = listGuarded().filter(({ path }) => findArea(path) === undefined)
    assert.deepEqual(undecided, [])
    const paths = new Set(listRoutes(auth.app).map(({ path }) => generalize(path)))
    assert.deepEqual([...OPEN.union(WITHOUT_STEP_UP).union(FOR_AUDITORS).difference(paths)], [])
  })

  it('names its operation if it is an action of administrators, and shows no form of another one (ADMIN-22)', () => {
    const actions = new Map(
      adminRoutes.flatMap(({ method, path, operation }) =>
        method === 'POST' ? [[`/admin${path}`, operation]] : [],
      ),
    )
    const served = listGuarded().filter(({ method, path }) => method !== 'GET' && findArea(path) === '/admin')
    assert.deepEqual(served.map(({ path }) => path).toSorted(), [...actions.keys()].toSorted())
    for (const { method, path, operation } of adminRoutes)
      if (method === 'GET' && operation) assert.deepEqual(actions.get(`/admin${path}`), operation)
  })

  it('refuses the forms of other sites, whoever is signed in (ADMIN-20)', async () => {
    for (const route of listGuarded().filter(({ method }) => method !== 'GET'))
      for (const site of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }]) {
        const caller = findArea(route.path) === '/admin/api' ? 'client' : 'admin'
        const { statusCode, body } = await send(route, caller, site)
        assert.equal(statusCode, 403, `${route.method} ${route.path}`)
        assert.doesNotMatch(body, /Sign in again/)
      }
  })

  const callers: readonly Caller[] = [
    ...(['nobody', 'clinician', 'patient', 'related', 'former', 'disabled'] as const),
    ...(['helpdesk', 'officer', 'client', 'reader', 'stale', 'auditor', 'admin'] as const),
  ]
  for (const caller of callers)
    it(`admits only its callers: ${caller} (ADMIN-20, ADMIN-29, ADMIN-31, LOGIN-19)`, async () => {
      const content = await readTables()
      const results = new Map<string, readonly [Outcome, Outcome]>()
      for (const route of listGuarded()) {
        const expected = findExpected(caller, route)
        // The operations of the API have tests of their own.
        if (caller === 'client' && expected === 'admitted') continue
        const outcome = readOutcome(await send(route, caller), route)
        if (outcome !== expected) results.set(`${route.method} ${route.path}`, [outcome, expected])
      }
      assert.deepEqual(Object.fromEntries(results), {})
      if (caller !== 'admin') assert.deepEqual(await readTables(), content)
    })

  for (const [name, caller, path, end] of [
    ['an administrator', 'admin', '/admin/reload', () => change('admin', { admin: false })],
    [
      'a client of the API',
      'client',
      '/admin/api/policy/reload',
      () => auth.store.db.deleteFrom('client').where('client_id', '=', 'client').execute(),
    ],
  ] as const)
    it(`refuses ${name} after a loss of access while the body arrives (ADMIN-20, ADMIN-6)`, async () => {
      const body = async function* () {
        await end()
        yield '{}'
      }
      const type = { 'content-type': caller === 'client' ? 'application/json' : FORM['content-type'] }
      const { statusCode } = await auth.app.inject({
        method: 'POST',
        url: path,
        payload: Readable.from(body()),
        headers: { ...headers.get(caller), ...type },
      })
      assert.ok(statusCode === 401 || statusCode === 403, `${statusCode}`)
    })

  it('records each refusal of an administration page (ADMIN-20)', async () => {
    const records = await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 1000 })
    const refused = records.filter(({ reason }) => reason === 'Not an administrator')
    const pages = listGuarded().filter(({ path }) => findArea(path) === '/admin')
    assert.equal(refused.length, 5 * pages.length + 1)
  })
})
