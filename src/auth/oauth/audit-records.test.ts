import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { createAuditor, findRecords } from '../../audit/index.ts'
import type { Store } from '../../store/index.ts'
import { LIMITS } from '../base/limits.ts'
import { SigningClient } from '../testing/signing-client.ts'
import { TestAuthServer } from '../testing/test-auth-server.ts'

const SCOPE = 'sallyport/audit'

eachDatabase((_name, open) => {
  describe('POST /audit-records', () => {
    let store: Store
    let auth: TestAuthServer
    let token = ''
    const sender = (id: string) => new SigningClient(id, auth.time)
    const askToken = async (client: SigningClient, scope: string): Promise<string> => {
      const response = await auth.requestToken({
        grant_type: 'client_credentials',
        scope,
        ...client.makeProof(),
      })
      assert.equal(response.statusCode, 200, response.body)
      return response.json().access_token
    }
    before(async () => {
      store = await open()
      auth = await TestAuthServer.open(store, { audit: createAuditor({ store }) })
      for (const [id, scope] of [
        ['my-server', SCOPE],
        ['other-server', SCOPE],
        ['console', 'sallyport/admin'],
        ['nightly', 'system/*.rs'],
      ] as const)
        await auth.addClient({
          client_id: id,
          auth_method: 'private_key_jwt',
          jwks: sender(id).jwks,
          scope,
        })
      token = await askToken(sender('my-server'), SCOPE)
    })

    const record = (more: object = {}) => ({ at: auth.time.now, allowed: true, status: 200, ...more })
    const post = (body: unknown, bearer = token, type = 'application/json') =>
      auth.app.inject({
        method: 'POST',
        url: '/audit-records',
        headers: { 'content-type': type, ...(bearer !== '' && { authorization: `Bearer ${bearer}` }) },
        payload: typeof body === 'string' ? body : JSON.stringify(body),
      })
    const sendRecords = (records: readonly unknown[], more: object = {}, bearer = token) =>
      post(
        { issuer: auth.settings.issuerUrl, fhirBaseUrl: auth.settings.fhirBaseUrl, records, ...more },
        bearer,
      )
    const listStored = async (client?: string) =>
      (await findRecords(store, { events: [{ kind: 'fhir' }], limit: 1000, order: 'oldest' })).filter(
        it => client === undefined || it.client_id === client,
      )

    it('stores a record once, however often it is sent, and names the sender (AUDIT-24)', async () => {
      const sent = {
        interaction: 'search-type',
        method: 'GET',
        request: 'Condition?patient=1',
        type: 'Condition',
        patients: ['1', '2', '*'],
        client: 'once',
        subject: 'c-1',
        fhirUser: 'Practitioner/p1',
        by: 'user/*.rs',
        token: 'abc.def',
        requestId: 'r-1',
        address: '10.0.0.1',
      }
      const [id, unknown] = ['0af7651916cd43dd', 'b7ad6b7169203331']
      const records = [
        { id, record: record(sent) },
        { id, record: record(sent) },
        { id: unknown, record: record({ client: 'once', status: 0 }) },
      ]
      for (let times = 0; times < 3; times++) {
        const response = await sendRecords(records)
        assert.deepEqual([response.statusCode, response.json()], [200, { refused: [] }], response.body)
      }
      const [stored, later, ...more] = await listStored('once')
      assert.deepEqual([more, later?.status], [[], 0])
      assert.deepEqual(
        [
          stored?.server,
          stored?.kind,
          stored?.patients,
          stored?.subject,
          stored?.request_id,
          stored?.details,
        ],
        ['fhir', 'fhir', ' 1 2 * ', 'c-1', 'r-1', '{"reportedBy":"my-server"}'],
      )
      const other = await askToken(sender('other-server'), SCOPE)
      await sendRecords([{ id, record: record({ client: 'once' }) }], {}, other)
      assert.equal((await listStored('once')).length, 3, 'an id is that of its sender')
    })

    it('is for clients with the scope alone, before the body is read (AUDIT-24)', async () => {
      const admin = await askToken(sender('console'), 'sallyport/admin')
      const service = await askToken(sender('nightly'), 'system/*.rs')
      for (const [bearer, status] of [
        ['', 401],
        ['junk', 401],
        [admin, 403],
        [service, 401],
      ] as const)
        assert.equal((await post('{"records":', bearer)).statusCode, status, bearer)
      const { statusCode } = await auth.app.inject({
        method: 'GET',
        url: '/admin/api/clients',
        headers: { authorization: `Bearer ${token}` },
      })
      assert.equal(statusCode, 403)
      const other = await askToken(sender('other-server'), SCOPE)
      await store.db
        .updateTable('client')
        .set({ disabled: true })
        .where('client_id', '=', 'other-server')
        .execute()
      assert.equal((await sendRecords([], {}, other)).statusCode, 401)
    })

    it('refuses a batch about another issuer or FHIR server, and one that is too long (AUDIT-24)', async () => {
      const one = [{ id: 'a', record: record() }]
      for (const [records, more, text] of [
        [one, { issuer: 'https://other.example' }, /^issuer, expected http/],
        [one, { fhirBaseUrl: 'https://other.example/fhir' }, /^fhirBaseUrl, expected http/],
        [undefined, {}, /must be a JSON object with records/],
        [[{ record: record() }], {}, /needs an id/],
        [[{ id: '../x', record: record() }], {}, /needs an id/],
        [['x'], {}, /needs an id/],
        [Array.from({ length: 501 }, (_, at) => ({ id: `${at}`, record: record() })), {}, /more than 500/],
      ] as const) {
        const response = await sendRecords(records as never, more)
        assert.equal(response.statusCode, 400, response.body)
        assert.match(response.json().error_description, text)
      }
      assert.equal((await post('x', token, 'text/plain')).statusCode, 415)
      assert.equal((await post(`"${'x'.repeat(LIMITS.auditRecordsBytes)}"`)).statusCode, 413)
    })

    it('refuses hostile records one by one, and stores the others (AUDIT-24)', async () => {
      const bad: readonly unknown[] = [
        record({ server: 'auth' }),
        record({ kind: 'login' }),
        record({ details: { reportedBy: 'other-server' } }),
        record({ anonymous: true }),
        record({ at: auth.time.now + 6 * 60_000 }),
        record({ at: 0 }),
        record({ at: '1' }),
        record({ status: 1000 }),
        record({ status: 200.5 }),
        record({ allowed: 'true' }),
        record({ method: 'sallyport' }),
        record({ address: 'root@server' }),
        record({ patient: 'a b' }),
        record({ patients: ['1', '1 2'] }),
        record({ patients: Array.from({ length: 1002 }, () => '1') }),
        record({ fhirUser: 'https://other.example/Practitioner/1' }),
        record({ request: 'x'.repeat(2001) }),
        record({ reason: { toString: 'x' } }),
        record({ repeats: -1 }),
        record({ constructor: 'x' }),
        { at: auth.time.now, status: 200 },
        null,
        [],
      ]
      const records = bad.map((it, at) => ({ id: `bad-${at}`, record: it }))
      const response = await sendRecords([...records, { id: 'good', record: record({ client: 'good' }) }])
      assert.equal(response.statusCode, 200)
      const refused: readonly { readonly id: string; readonly reason: string }[] = response.json().refused
      assert.deepEqual(
        refused.map(({ id }) => id),
        records.map(({ id }) => id),
      )
      assert.ok(refused.every(({ reason }) => reason !== ''))
      assert.equal((await listStored('good')).length, 1)
    })

    it('refuses a record that gives a launch of this server to another app or user (AUDIT-24)', async () => {
      await auth.getCode(await auth.logIn())
      const { id, client_id, clinician_id } = await store.db
        .selectFrom('grant')
        .select(['id', 'client_id', 'clinician_id'])
        .executeTakeFirstOrThrow()
      const own = { launch: id, client: client_id, subject: clinician_id }
      const response = await sendRecords([
        { id: 'own', record: record(own) },
        { id: 'app', record: record({ ...own, client: 'evil' }) },
        { id: 'user', record: record({ ...own, subject: 'somebody' }) },
        { id: 'nobody', record: record({ launch: id }) },
        { id: 'unknown', record: record({ ...own, launch: 'forgotten' }) },
      ])
      assert.deepEqual(
        response.json().refused.map((it: { id: string }) => it.id),
        ['app', 'user', 'nobody'],
      )
    })

    it('takes a limited number of records in a minute from each client', async () => {
      const records = Array.from({ length: 500 }, (_, at) => ({ id: `r${at}`, record: null }))
      const statuses: number[] = []
      for (let times = 0; times <= LIMITS.auditRecordsPerMinute / 500; times++)
        statuses.push((await sendRecords(records)).statusCode)
      assert.equal(statuses.at(-1), 429)
      auth.time.now += 61_000
      assert.equal((await sendRecords(records)).statusCode, 200)
    })

    it('takes a limited number of requests in a minute from each client, also empty and invalid ones', async () => {
      auth.time.now += 61_000
      const records = Array.from({ length: 500 }, (_, at) => ({ id: `r${at}`, record: null }))
      for (let times = 1; times < LIMITS.auditRecordsPerMinute / 500; times++)
        assert.equal((await sendRecords(records)).statusCode, 200)
      const statuses = new Map<number, number>()
      for (let times = 0; times < 40; times++) {
        const { statusCode } = await sendRecords(times % 2 === 0 ? [] : [{ id: '?', record: null }])
        statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1)
      }
      assert.deepEqual(Object.fromEntries(statuses), { 200: 13, 400: 12, 429: 15 })
      auth.time.now += 61_000
      assert.equal((await sendRecords([])).statusCode, 200)
    })

    it('is refused if the server keeps no trail, so that the sender keeps its records', async () => {
      const silent = await TestAuthServer.open(await open())
      await silent.addClient({
        client_id: 'my-server',
        auth_method: 'private_key_jwt',
        jwks: new SigningClient('my-server', silent.time).jwks,
        scope: SCOPE,
      })
      const proof = new SigningClient('my-server', silent.time).makeProof()
      const issued = await silent.requestToken({ grant_type: 'client_credentials', scope: SCOPE, ...proof })
      const response = await silent.app.inject({
        method: 'POST',
        url: '/audit-records',
        headers: { authorization: `Bearer ${issued.json().access_token}` },
        payload: { records: [] },
      })
      assert.equal(response.statusCode, 400)
      assert.match(response.json().error_description, /keeps no audit trail/)
    })
  })
})
