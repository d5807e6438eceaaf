import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type FastifyInstance, fastify } from 'fastify'
import { createSchemaCheck } from '../../../test/support/openapi.ts'
import { createAuditor, createFhirSender, findRecords, openEventIds } from '../../audit/index.ts'
import { parsePolicyText } from '../../config/index.ts'
import { type Resource, validate } from '../../fhir/index.ts'
import { sha256 } from '../../store/index.ts'
import { listRoutes } from '../../web/http/index.ts'
import type { Controls } from '../base/context.ts'
import { TestAuthServer } from '../testing/test-auth-server.ts'
import { makeProvider } from '../testing/test-sign-in.ts'
import { openTestStore } from '../testing/test-store.ts'
import { addWrongPasswords } from '../testing/wrong-passwords.ts'
import { OPERATIONS } from './administration.ts'

const POLICY = `rules:
  - clinicians: [Practitioner/p7]
    organizations: [Organization/north]
  - clinicians: all
    careTeams: own
  - clinicians: [Practitioner/p8]
    patients: [other]`

const RESOURCES = [
  { resourceType: 'Patient', id: 'juniper', managingOrganization: { reference: 'Organization/north' } },
  {
    resourceType: 'CareTeam',
    id: 'team',
    status: 'active',
    subject: { reference: 'Patient/juniper' },
    participant: [{ member: { reference: 'Practitioner/p9' } }, { member: { reference: 'Patient/juniper' } }],
  },
]

interface Entity {
  readonly detail?: readonly { readonly type: string; readonly valueString: string }[]
}

type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'

describe('the administration API', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let token: string
  let provider: FastifyInstance
  const live = { level: 'info', problems: [] as string[], policy: POLICY, nextPolicy: POLICY }
  const controls: Controls = {
    getPolicy: () => {
      const policy = parsePolicyText(live.policy)
      return 'problem' in policy ? undefined : policy
    },
    getLogLevel: () => live.level as 'info',
    setLogLevel: async level => {
      live.level = level
    },
    reload: async () => {
      if (live.problems.length > 0) return { problems: live.problems }
      live.policy = live.nextPolicy
      return { changed: ['policy: changed'], needRestart: ['smart.x'] }
    },
  }

  before(async () => {
    provider = fastify()
    const url = await provider.listen({ port: 0, host: '127.0.0.1' })
    const store = await open()
    auth = await TestAuthServer.open(store, {
      audit: createAuditor({ store }),
      controls,
      resources: RESOURCES,
      settings: {
        login: {
          order: [],
          passwords: true,
          secondFactor: 'none',
          providers: [makeProvider({ issuer: url })],
        },
      },
    })
    await auth.addClient({
      client_id: 'console',
      auth_method: 'client_secret',
      secret_hash: sha256('s'),
      scope: 'sallyport/admin',
      redirect_uris: '[]',
      launch_url: null,
    })
    token = await requestToken('console', 's')
  })
  after(() => provider.close())

  async function requestToken(client_id: string, client_secret: string, scope = 'sallyport/admin') {
    const form = { grant_type: 'client_credentials', scope, client_id, client_secret }
    return (await auth.requestToken(form)).json().access_token
  }

  function send(method: Method, path: string, payload?: object, bearer = token) {
    return auth.app.inject({
      method,
      url: `/admin/api${path}`,
      headers: { authorization: `Bearer ${bearer}` },
      ...(payload && { payload }),
    })
  }

  const readDocument = async () => (await auth.app.inject({ url: '/admin/api/openapi.json' })).json()

  it('warns of scopes that can never work, where a client is added or changed (AUTHORIZE-7)', async () => {
    const scope = 'patient/Patient.rs patient/Condition.s'
    const note = /^patient\/Condition\.s is never granted: a search needs r/
    const added = await send('POST', '/clients', {
      client_id: 'noted',
      redirect_uris: ['https://noted.example/cb'],
      token_endpoint_auth_method: 'none',
      scope,
    })
    assert.equal(added.statusCode, 201, added.body)
    assert.match(added.json().warnings[0], note)
    const change = (members: object) => send('PATCH', '/clients/noted', members)
    assert.equal((await change({ scope: 'patient/Patient.rs' })).json().warnings, undefined)
    assert.match((await change({ scope })).json().warnings[0], note)
    assert.equal((await send('GET', '/clients/noted')).json().warnings, undefined)
    await send('DELETE', '/clients/noted')
  })

  it('has an OpenAPI 3.1 document with every route, and responses that match its schemas (ADMIN-7)', async () => {
    const document = await readDocument()
    assert.equal(document.openapi, '3.1.0')
    const documented = Object.entries<Record<string, object>>(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map(method => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`),
    )
    const registered = listRoutes(auth.app)
      .map(({ method, path }) => `${method} ${path}`)
      .filter(route => route.includes(' /admin/api/') && !route.endsWith('openapi.json'))
    assert.deepEqual(documented.toSorted(), registered.toSorted())

    const check = createSchemaCheck(document)
    const used = new Set<string>()
    const call = async (method: Method, template: string, params: readonly string[], payload?: object) => {
      const left = [...params]
      const path = template.replace(/\{\w+\}/g, () => encodeURIComponent(left.shift() ?? ''))
      const response = await send(method, path, payload)
      const operation = document.paths[`/admin/api${template.split('?')[0]}`][method.toLowerCase()]
      const expected = operation.responses[response.statusCode]
      assert.ok(response.statusCode < 300, `${method} ${path}: ${response.statusCode} ${response.body}`)
      if (String(response.headers['content-type']).startsWith('application/json'))
        await check(expected, response)
      used.add(operation.operationId)
      // A request that changes something is an operation, for which a decision about the sign-in exists.
      if (method !== 'GET' && template !== '/policy/validate')
        assert.ok(await isRecorded(response), `${method} ${path}`)
      return response
    }
    const operations = OPERATIONS.map(({ name }) => name)
    const isRecorded = async ({ headers }: { readonly headers: Readonly<Record<string, unknown>> }) => {
      const { request } = await (await auth.store.trail.read())
        .selectFrom('audit_event')
        .select('request')
        .where('request_id', '=', String(headers['x-request-id']))
        .executeTakeFirstOrThrow()
      return operations.some(operation => `${request} `.startsWith(`${operation} `))
    }

    const app = {
      client_id: 'growth',
      redirect_uris: ['https://growth.example/cb'],
      scope: 'launch patient/*.rs',
    }
    const { client_secret } = (await call('POST', '/clients', [], app)).json()
    assert.ok(client_secret)
    await call('GET', '/clients?text=GROW&limit=1&approved=true', [])
    const changed = await call('PATCH', '/clients/{client_id}', ['growth'], {
      client_name: 'Growth',
      logo_uri: null,
      policy_uri: 'https://growth.example/privacy',
      contacts: ['help@growth.example'],
    })
    assert.equal(changed.json().client_name, 'Growth')
    assert.equal(changed.json().policy_uri, 'https://growth.example/privacy')
    assert.deepEqual(changed.json().contacts, ['help@growth.example'])
    assert.equal((await call('GET', '/clients/{client_id}', ['growth'])).json().client_secret, undefined)
    for (const verb of ['approve', 'disable', 'enable'])
      await call('POST', `/clients/{client_id}/${verb}`, ['growth'])
    const rotated = (await call('POST', '/clients/{client_id}/rotate-secret', ['growth'], {})).json()
    assert.notEqual(rotated.client_secret, client_secret)

    for (const [path, user] of [
      ['/clinicians', { fhir_user: 'Practitioner/p7', admin: false }],
      ['/accounts', { fhir_user: 'Patient/juniper', related_persons: ['r1'] }],
    ] as const) {
      const name = path.slice(1)
      const added = await call('POST', path, [], { username: name, display_name: name, ...user })
      const { id } = added.json()
      assert.equal(added.statusCode, 201)
      await call('GET', `${path}?disabled=false`, [])
      const findNames = async (query: string) =>
        (await call('GET', `${path}?${query}`, []))
          .json()
          .items.map((item: { username: string }) => item.username)
      assert.ok((await findNames('state=never')).includes(name))
      assert.deepEqual(await findNames('state=locked'), [])
      assert.equal((await send('GET', `${path}?state=asleep`)).statusCode, 400)
      const other = { username: `other-${name}`, display_name: 'Other', fhir_user: user.fhir_user }
      const invitation = (await call('POST', path, [], { ...other, activation_link: true })).json()
      const { id: otherId, warnings } = invitation
      assert.match(invitation.activation_link.url, /\/login\/activate#[\w-]{43}$/)
      assert.equal(invitation.activation_link.expires_at, invitation.activation_ends_at)
      assert.match(warnings.join(), new RegExp(`^${user.fhir_user} is also the FHIR user of ${name}\\. `))
      const elsewhere = { fhir_user: path === '/accounts' ? 'Patient/ashlar' : 'Practitioner/p8' }
      assert.equal((await call('PATCH', `${path}/{id}`, [otherId], elsewhere)).json().warnings, undefined)
      const unknown = path === '/accounts' ? ['RelatedPerson/r1'] : ['Practitioner/p7']
      assert.deepEqual((await call('GET', `${path}/{id}`, [id])).json().unknown_fhir_users, unknown)
      await auth.store.db
        .insertInto('login')
        .values({
          id_hash: `login-${name}`,
          clinician_id: id,
          created_at: auth.time.now,
          expires_at: auth.time.now + 9e6,
        })
        .execute()
      await call('GET', `${path}/{id}/sign-ins`, [id])
      assert.equal((await send('DELETE', `${path}/${id}/sign-ins?sign_in=none`)).statusCode, 404)
      await call('DELETE', `${path}/{id}/sign-ins?sign_in=login-${name}`, [id])
      await call('GET', `${path}?second_factor=false`, [])
      await call('PATCH', `${path}/{id}`, [id], { display_name: 'X', disabled: true })
      assert.ok((await call('POST', `${path}/{id}/password`, [id], {})).json().password)
      const reset = (await call('POST', `${path}/{id}/password`, [id], { activation_link: true })).json()
      assert.match(reset.activation_link.url, /\/login\/activate#[\w-]{43}$/)
      assert.deepEqual(Object.keys(reset), ['activation_link'])
      const invited = (await call('GET', `${path}/{id}`, [id])).json()
      assert.equal(invited.activation_ends_at, reset.activation_link.expires_at)
      assert.equal(invited.has_password, false)
      await call('POST', `${path}/{id}/end-sessions`, [id], { keep_apps: true })
      await auth.store.db
        .insertInto('factor')
        .values({ clinician_id: id, kind: 'totp', name: 'Phone', created_at: 1 })
        .execute()
      await call('POST', `${path}/{id}/reset-second-factor`, [id], { keep_apps: true })
      await addWrongPasswords(auth.store.db, id)
      const locked = (await call('GET', `${path}?locked=true&signed_in=false`, [])).json().items
      assert.deepEqual(
        locked.map((user: { readonly locked_at: string }) => user.locked_at),
        ['1970-01-01T00:00:00.001Z'],
      )
      assert.equal((await call('POST', `${path}/{id}/unlock`, [id], {})).json().locked_at, undefined)
      await call('GET', `${path}?unused_days=90`, [])
      if (path === '/clinicians')
        for (const [role, other, list] of [
          ['admin', 'auditor', 'administrators'],
          ['auditor', 'admin', 'auditors'],
        ] as const) {
          const changed: Readonly<Record<string, unknown>> = (
            await call('PATCH', `${path}/{id}`, [id], { [role]: true })
          ).json()
          assert.deepEqual([changed[role], changed[other]], [true, false])
          const listed: { readonly items: readonly { readonly id: string }[] } = (
            await call('GET', `${path}?state=${list}`, [])
          ).json()
          assert.ok(listed.items.some(one => one.id === id))
        }
      const link = { issuer: 'https://idp.example', subject: name }
      assert.deepEqual((await call('POST', `${path}/{id}/links`, [id], link)).json().links.length, 1)
      await call('DELETE', `${path}/{id}/links?${new URLSearchParams(link)}`, [id])
      await call('DELETE', `${path}/{id}`, [id])
      assert.equal((await send('GET', `${path}/${id}`)).statusCode, 404)
    }

    await auth.exchange(await auth.getCode(await auth.logIn()))
    const [grant] = (await call('GET', '/grants?client_id=sallyport-app', [])).json().items
    await call('DELETE', '/grants/{id}', [grant.id])
    await auth.store.db
      .insertInto('export_job')
      .values({
        id: 'job-1',
        issuer: '',
        client_id: 'nightly',
        level: 'group',
        types: 'Condition Patient',
        started_at: auth.time.now,
        expires_at: auth.time.now + 60_000,
        next_poll_at: 0,
        revision: 1,
        files: 2,
        order_sealed: 'x',
        plan_sealed: null,
      })
      .execute()
    const exported = (await call('GET', '/exports?client_id=nightly', [])).json().items
    assert.deepEqual(
      exported.map((it: { readonly id: string; readonly files: number }) => [it.id, it.files]),
      [['job-1', 2]],
    )
    assert.equal((await call('GET', '/exports/{id}', ['job-1'])).json().state, 'ready')
    assert.equal((await send('GET', '/exports/job-2')).statusCode, 404)
    await call('DELETE', '/exports/{id}', ['job-1'])
    assert.deepEqual((await call('GET', '/exports', [])).json().items, [])
    await auth.addClient({
      client_id: 'nightly',
      name: 'Nightly',
      auth_method: 'private_key_jwt',
      scope: 'launch system/*.rs',
    })
    const services = (await call('GET', '/services', [])).json().items
    assert.deepEqual(
      services.map((service: { readonly client_id: string; readonly scope: string }) => [
        service.client_id,
        service.scope,
      ]),
      [
        ['console', 'sallyport/admin'],
        ['nightly', 'system/*.rs'],
      ],
    )
    const [signedIn] = (await call('GET', '/sign-ins', [])).json().items
    await call('DELETE', '/sign-ins/{id}', [signedIn.id])
    assert.equal((await send('DELETE', `/sign-ins/${signedIn.id}`)).statusCode, 404)

    const since = encodeURIComponent(new Date(auth.time.now).toISOString())
    const filter = `kind=admin&outcome=allowed&since=${since}`
    const { items } = (await call('GET', `/audit?${filter}&limit=5`, [])).json()
    assert.equal(items[0].request, 'audit list')
    assert.equal(items[2].details.before.client_id, 'nightly')
    assert.equal(items[3].details.before.client_id, 'sallyport-app')
    await call('GET', '/audit/export', [])
    assert.deepEqual((await call('GET', '/audit/verification', [])).json(), { state: 'never' })
    assert.equal((await call('POST', '/audit/verification', [], {})).json().state, 'intact')
    const mistyped = { head: `0:${'A'.repeat(43)}` }
    const verified = (await call('POST', '/audit/verification', [], mistyped)).json()
    assert.deepEqual([verified.state, verified.problems.length], ['unknown-head', 1])
    assert.equal((await call('POST', '/audit/verification', [], {})).json().state, 'intact')
    const { counts, attention } = (await call('GET', '/overview', [])).json()
    assert.deepEqual([counts.clinicians > 0, counts.refused_sign_ins], [true, 0])
    const codes = attention.map(({ code }: { readonly code: string }) => code)
    assert.deepEqual(codes.toSorted(), ['provider-hospital', 'server-app', 'server-fhir', 'users-unknown'])

    assert.deepEqual((await call('POST', '/policy/validate', [], { policy: POLICY })).json(), {
      valid: true,
      rules: 3,
    })
    const { items: access } = (await call('GET', '/policy/patients/{id}', ['juniper'])).json()
    assert.deepEqual(access, [
      { rule: 1, reason: 'Organization/north manages the patient', clinicians: ['Practitioner/p7'] },
      {
        rule: 2,
        reason: 'members of CareTeam/team, which treats the patient',
        clinicians: ['Practitioner/p9'],
      },
    ])
    assert.deepEqual((await call('POST', '/policy/reload', [])).json(), {
      changed: ['policy: changed'],
      need_restart: ['smart.x'],
    })
    await call('GET', '/providers', [])
    const tested = (await call('POST', '/providers/{id}/test', ['hospital'])).json()
    assert.deepEqual([tested.ok, typeof tested.reason], [false, 'string'])
    assert.equal((await call('POST', '/agents/off', [], {})).json().agents, 'off')
    assert.equal((await call('POST', '/agents/on', [], {})).json().agents, 'on')
    assert.equal((await call('PUT', '/log-level', [], { level: 'debug' })).json().level, 'debug')
    await call('GET', '/log-level', [])
    const system = (await call('GET', '/system', [])).json()
    assert.deepEqual([system.database, system.servers[0].ready, system.policy_rules], ['sqlite', true, 3])

    await call('GET', '/keys', [])
    await call('POST', '/keys', [])
    const [key] = (await call('GET', '/keys', [])).json().items
    await call('DELETE', '/keys/{kid}', [key.kid])
    await call('DELETE', '/clients/{client_id}', ['growth'])
    token = await requestToken('console', 's')

    const all = Object.values<Record<string, { operationId: string }>>(document.paths).flatMap(path =>
      Object.values(path).map(operation => operation.operationId),
    )
    assert.deepEqual([...used].toSorted(), all.toSorted())
  })

  it('accepts only the token of a client that is an administrator now (ADMIN-6)', async () => {
    const browser = await auth.logIn()
    const { access_token } = (await auth.exchange(await auth.getCode(browser))).json()
    await auth.addClient({
      client_id: 'former',
      auth_method: 'client_secret',
      secret_hash: sha256('f'),
      scope: 'sallyport/admin',
      redirect_uris: '[]',
      launch_url: null,
    })
    const former = await requestToken('former', 'f')
    assert.equal((await send('GET', '/clients', undefined, former)).statusCode, 200)
    await auth.store.db
      .updateTable('client')
      .set({ scope: 'openid' })
      .where('client_id', '=', 'former')
      .execute()
    const document = await readDocument()
    const check = createSchemaCheck(document)
    for (const [path, operations] of Object.entries<Record<string, { responses: Record<string, never> }>>(
      document.paths,
    ))
      for (const [method, { responses }] of Object.entries(operations)) {
        const url = path.replace(/\{\w+\}/g, 'x')
        const inject = (headers: Record<string, string>) =>
          auth.app.inject({ method: method.toUpperCase() as Method, url, headers })
        const anonymous = await inject({})
        assert.equal(anonymous.statusCode, 401, `${method} ${path}`)
        await check(responses[401] as never, anonymous)
        const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
        assert.equal((await inject({ cookie })).statusCode, 401)
        assert.equal((await inject({ authorization: `Bearer ${access_token}` })).statusCode, 401)
        assert.equal((await inject({ authorization: `Bearer ${former}` })).statusCode, 403)
      }
    await auth.store.db
      .updateTable('client')
      .set({ disabled: true })
      .where('client_id', '=', 'former')
      .execute()
    assert.equal((await send('GET', '/clients', undefined, former)).statusCode, 401)
    const refused = await (await auth.store.trail.read())
      .selectFrom('audit_event')
      .select('reason')
      .where('allowed', '=', false)
      .where('kind', '=', 'admin')
      .execute()
    assert.ok(refused.length > 0)
  })

  it('performs for a client that only reads what it performs for auditors, and names it in the record of a refusal (ADMIN-31)', async () => {
    const scope = 'sallyport/admin.read'
    const added = await send('POST', '/clients', { client_id: 'siem', scope })
    assert.equal(added.statusCode, 201, added.body)
    const reader = await requestToken('siem', added.json().client_secret, scope)
    const { paths } = await readDocument()
    for (const [path, operations] of Object.entries<Record<string, { security: object }>>(paths))
      for (const [method, { security }] of Object.entries(operations)) {
        const isForReaders = method === 'get' || path === '/admin/api/audit/verification'
        const scopes = isForReaders ? [scope, 'sallyport/admin'] : ['sallyport/admin']
        assert.deepEqual(
          security,
          scopes.map(one => ({ administrator: [one] })),
        )
      }
    for (const path of ['/clients', '/clinicians', '/keys', '/grants', '/audit', '/audit/export', '/system'])
      assert.equal((await send('GET', path, undefined, reader)).statusCode, 200, path)
    const denied = await send('DELETE', '/clients/siem', undefined, reader)
    assert.deepEqual([denied.statusCode, denied.json().error], [403, 'insufficient_scope'])
    assert.match(String(denied.headers['www-authenticate']), /scope="sallyport\/admin"/)
    const [record] = await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 1 })
    assert.deepEqual([record?.client_id, Boolean(record?.allowed), record?.status], ['siem', false, 403])
    assert.deepEqual(
      [record?.method, record?.request, record?.resource_type, record?.resource_id],
      ['admin-api', 'client remove siem', 'client', 'siem'],
    )
    const [shown] = (await send('GET', '/audit?kind=admin&outcome=refused&limit=1')).json().items
    assert.deepEqual([shown.request, shown.resource_id], ['client remove siem', 'siem'])
    assert.equal((await send('DELETE', '/clients/siem')).statusCode, 200)
  })

  const refused: readonly (readonly [
    method: Method,
    path: string,
    body: object | undefined,
    status: number,
    text: RegExp,
  ])[] = [
    ['GET', '/clients?nothing=1', undefined, 400, /nothing/],
    ['GET', '/clients?limit=101', undefined, 400, /limit/],
    ['GET', '/clients?text=%00', undefined, 400, /NUL/],
    ['POST', '/clients', { client_name: 'a\0b' }, 400, /NUL/],
    ['GET', '/audit?since=2026-13-77', undefined, 400, /time/],
    ['GET', '/clients?limit=0', undefined, 400, /limit/],
    ['GET', '/clients?limit=5&limit=6', undefined, 400, /limit/],
    ['GET', `/clients?after=${'x'.repeat(501)}`, undefined, 400, /after/],
    ['POST', '/clients', { grant_types: ['implicit'] }, 400, /grant_types/],
    ['POST', '/clients', { scope: 'openid' }, 400, /redirect/],
    ['POST', '/clients', { client_id: 'sallyport-portal', scope: 'system/*.rs' }, 400, /reserved/],
    ['POST', '/clients', { client_id: 'console', scope: 'sallyport/admin' }, 409, /taken/],
    [
      'POST',
      '/clients',
      { scope: 'sallyport/admin', token_endpoint_auth_method: 'none' },
      400,
      /secret or keys/,
    ],
    [
      'POST',
      '/clients',
      { scope: 'sallyport/admin', redirect_uris: ['https://a.example/'] },
      400,
      /redirect URI/,
    ],
    [
      'POST',
      '/clients',
      { scope: 'sallyport/admin openid', redirect_uris: ['https://a.example/'] },
      400,
      /./,
    ],
    ['GET', '/clients/nobody', undefined, 404, /nobody/],
    ['POST', '/clients/sallyport-app/rotate-secret', {}, 409, /has no secret/],
    ['POST', '/clinicians', { username: 'x' }, 400, /display_name/],
    [
      'POST',
      '/clinicians',
      { username: 'x', display_name: 'X\u202e', fhir_user: 'Practitioner/1' },
      400,
      /A display name has 1 to 200 characters on one line, without invisible/,
    ],
    [
      'POST',
      '/accounts',
      { username: 'x\u2066', display_name: 'X', fhir_user: 'Patient/1' },
      400,
      /A username has at most 100 letters, digits and the characters/,
    ],
    [
      'POST',
      '/clients',
      { client_name: 'X\u200f', scope: 'openid', redirect_uris: ['https://a.example/'] },
      400,
      /on one line, without invisible characters/,
    ],
    [
      'POST',
      '/clinicians',
      { username: 'x', display_name: 'X', fhir_user: 'Patient/1' },
      400,
      /Practitioner/,
    ],
    [
      'POST',
      '/clinicians',
      { username: 'x', display_name: 'X', fhir_user: 'Practitioner/1', admin: true, auditor: true },
      400,
      /A user is an administrator or an auditor, not both/,
    ],
    [
      'POST',
      '/accounts',
      { username: 'x', display_name: 'X', fhir_user: 'Patient/1', auditor: true },
      400,
      /auditor/,
    ],
    [
      'POST',
      '/clinicians',
      { username: 'x', display_name: 'X', fhir_user: 'Practitioner/1', password: 'short' },
      400,
      /8 characters/,
    ],
    [
      'POST',
      '/accounts',
      {
        ...{ username: 'x', display_name: 'X', fhir_user: 'Patient/1' },
        ...{ password: 'correct horse battery', activation_link: true },
      },
      400,
      /not both/,
    ],
    [
      'POST',
      '/accounts',
      { username: 'x', display_name: 'X', fhir_user: 'Patient/1', admin: true },
      400,
      /admin/,
    ],
    [
      'POST',
      '/clinicians',
      { user_name: 'x', display_name: 'X', role: 'nurse' },
      400,
      /^There is no member user_name; there is no member role; the member username is missing\.$/,
    ],
    [
      'POST',
      '/clients',
      {
        client_id: 'x',
        token_endpoint_auth_method: 'none',
        scope: 'launch patient/Foo.rs patient/Bar.rs',
        redirect_uris: ['ftp://x', 'https://x.example/cb', 'nonsense'],
      },
      400,
      /ftp:\/\/x: .*; the member redirect_uris is not valid: nonsense: .*; the member scope is not valid: patient\/Foo\.rs: .*; the member scope is not valid: patient\/Bar\.rs: /,
    ],
    ['DELETE', '/keys/nothing', undefined, 404, /nothing/],
    ['GET', '/grants?patient=a&patient=b', undefined, 400, /patient/],
    ['GET', '/audit?since=yesterday', undefined, 400, /since|time/],
    ['GET', '/audit/export?format=pdf', undefined, 400, /format/],
    ['GET', '/policy/patients/absent', undefined, 404, /absent/],
    ['GET', '/policy/patients/a%00b', undefined, 400, /valid/],
    ['POST', '/providers/nobody/test', {}, 404, /nobody/],
    ['PUT', '/log-level', { level: 'loud' }, 400, /level/],
    ['GET', '/nothing', undefined, 404, /./],
    ['POST', '/system', {}, 405, /./],
  ]
  for (const [method, path, body, status, text] of refused)
    it(`answers ${method} ${path.slice(0, 60)} ${JSON.stringify(body ?? {})} with ${status} and the reason (ADMIN-7)`, async () => {
      const response = await send(method, path, body)
      assert.equal(response.statusCode, status, response.body)
      assert.deepEqual(Object.keys(response.json()), ['error', 'error_description'])
      assert.match(response.json().error_description, text)
      assert.equal(
        response.headers['cache-control'],
        path === '/nothing' || status === 405 ? response.headers['cache-control'] : 'no-store',
      )
    })

  it('reports an invalid policy or settings file, and changes nothing (ADMIN-9)', async () => {
    const response = await send('POST', '/policy/validate', { policy: 'rules: [{clinicians: nobody}]' })
    assert.deepEqual(response.json().valid, false)
    assert.match(response.json().problems[0], /^rules\[0\]\.clinicians: expected/)
    live.problems.push('policy file: unknown name x')
    const reloaded = await send('POST', '/policy/reload')
    live.problems.length = 0
    assert.deepEqual([reloaded.statusCode, reloaded.json().error], [409, 'conflict'])
  })

  it('returns lists in pages, each with the cursor of the next one (ADMIN-7)', async () => {
    const ids: string[] = []
    let after = ''
    do {
      const { items, next = '' } = (
        await send('GET', `/clients?limit=1${after && `&after=${encodeURIComponent(after)}`}`)
      ).json()
      ids.push(...items.map(({ client_id }: { client_id: string }) => client_id))
      after = next
    } while (after !== '')
    assert.ok(ids.length >= 3)
    assert.deepEqual(ids, [...new Set(ids)].toSorted())
  })

  it('records the values before and after each change, which feeds send in the AuditEvent (ADMIN-3)', async () => {
    const uris = Array.from({ length: 20 }, (_, at) => `https://growth.example/${'x'.repeat(500)}/${at}`)
    const client = {
      client_id: 'growth',
      redirect_uris: ['https://growth.example/cb'],
      scope: 'patient/*.rs',
    }
    const user = { username: 'changed', display_name: 'Before', fhir_user: 'Practitioner/p9' }
    const changes = async (from: number) => {
      const records = await findRecords(auth.store, {
        events: [{ kind: 'admin' }],
        order: 'oldest',
        limit: 1000,
      })
      const sent: string[] = []
      const send = createFhirSender({
        url: 'https://repository.example/fhir',
        fhirBaseUrl: 'https://fhir.example/fhir',
        ids: await openEventIds(auth.store),
        post: async (_, { body }) => ({ status: 200, text: String(sent.push(body)) }),
      })
      await send(
        records.filter(({ id }) => id > from),
        AbortSignal.timeout(1000),
      )
      const { entry } = JSON.parse(sent[0] ?? '{"entry":[]}')
      return entry.flatMap(({ resource }: { resource: Resource & { entity?: readonly Entity[] } }) => {
        assert.deepEqual(validate(resource), [])
        const details = resource.entity?.flatMap(({ detail = [] }) => detail) ?? []
        return [Object.fromEntries(details.map(({ type, valueString }) => [type, JSON.parse(valueString)]))]
      })
    }
    const newest = async () => (await findRecords(auth.store, { limit: 1 }))[0]?.id ?? 0
    const changed = async (method: Method, path: string, payload?: object) => {
      const from = await newest()
      const response = await send(method, path, payload)
      assert.ok(response.statusCode < 300, response.body)
      return { body: response.body, changes: await changes(from) }
    }

    const added = await changed('POST', '/clients', client)
    assert.equal(added.changes[0].before, undefined)
    assert.equal(added.changes[0].after.scope, 'patient/*.rs')
    const many = await changed('PATCH', '/clients/growth', { redirect_uris: uris, client_name: 'Growth' })
    assert.deepEqual(many.changes[0].before.redirect_uris, client.redirect_uris)
    assert.equal(many.changes[0].after.client_name, 'Growth')
    assert.match(
      String(many.changes[0].after.redirect_uris),
      /^https:\/\/growth.example\/x+…,.*… and 15 more$/,
    )
    const job = {
      issuer: '',
      level: 'system',
      types: 'Patient',
      started_at: auth.time.now,
      expires_at: auth.time.now + 60_000,
      next_poll_at: 0,
      revision: 0,
      files: null,
      order_sealed: 'x',
      plan_sealed: null,
    }
    for (const client_id of ['growth', 'nightly'])
      await auth.store.db
        .insertInto('export_job')
        .values({ ...job, id: client_id, client_id })
        .execute()
    assert.deepEqual((await changed('POST', '/clients/growth/disable')).changes, [
      { before: { disabled: false }, after: { disabled: true } },
    ])
    const exports = await auth.store.db.selectFrom('export_job').select('client_id').execute()
    assert.deepEqual(exports, [{ client_id: 'nightly' }])
    const { id } = JSON.parse((await changed('POST', '/clinicians', user)).body)
    assert.deepEqual((await changed('PATCH', `/clinicians/${id}`, { display_name: 'After' })).changes, [
      { before: { displayName: 'Before' }, after: { displayName: 'After' } },
    ])
    live.nextPolicy = 'rules:\n  - clinicians: all\n    patients: all'
    const [reload, policy] = (await changed('POST', '/policy/reload')).changes
    assert.deepEqual(
      [reload, policy.before.policy.rules.length, policy.after.policy.rules.length],
      [{}, 3, 1],
    )
    live.policy = POLICY
    const removed = await changed('DELETE', '/clients/growth')
    assert.deepEqual([removed.changes[0].before.client_id, removed.changes[0].after], ['growth', undefined])
  })

  it('exports CSV that a spreadsheet does not run, and NDJSON with AuditEvents (ADMIN-8)', async () => {
    await auth.store.db
      .insertInto('audit_event')
      .values({
        at: auth.time.now + 1,
        server: 'auth',
        kind: 'login',
        allowed: false,
        status: 401,
        client_id: '=cmd|x',
        reason: 'a "quoted", text',
      })
      .execute()
    const csv = await send('GET', '/audit/export?format=csv&kind=login&outcome=refused')
    assert.match(String(csv.headers['content-type']), /^text\/csv/)
    const [head = '', row = ''] = csv.body.split('\r\n')
    assert.match(head, /^id,at,server,kind/)
    assert.ok(row.includes(`,'=cmd|x,`), row)
    assert.ok(row.includes('"a ""quoted"", text"'), row)
    const ndjson = await send('GET', '/audit/export?kind=login')
    for (const line of ndjson.body.trim().split('\n'))
      assert.equal(JSON.parse(line).resourceType, 'AuditEvent')
  })
})
