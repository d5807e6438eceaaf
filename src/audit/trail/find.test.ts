import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { CompiledQuery, createQueryId, type KyselyPlugin, type RootOperationNode, sql } from 'kysely'
import { eachDatabase } from '../../../test/support/databases.ts'
import type { AuditRecord } from '../../audit-record/index.ts'
import { createSealer, type Store, sweep } from '../../store/index.ts'
import { toRow } from '../to-row.ts'
import {
  countRecords,
  type FindOptions,
  findFirstOAuthEvents,
  findLastTokens,
  findOwnEvents,
  findPage,
  findRecords,
  type KeptRecord,
  listParties,
} from './find.ts'
import { sweepAudit } from './seal.ts'
import type { RecordFilter } from './terms.ts'

const sealer = createSealer('a secret of the tests, long enough')

const KINDS = ['login', 'token', 'refresh'] as const
const INTERACTIONS = ['delete', 'create', 'update'] as const
const STATUSES = [403, 500, 0] as const
const PATIENTS = [[], ['ada'], ['bea'], ['ada', 'bea'], ['bea', 'cleo', '*']] as const

/** Many records have the same instant, and every value that a filter names is rare. */
function createRecord(at: number): AuditRecord {
  const patients = PATIENTS[at % 60] ?? [`p${at % 60}`]
  const kind = KINDS[at % 41] ?? 'fhir'
  return {
    at: 1000 + Math.floor(at / 4),
    server: 'fhir',
    kind,
    interaction: kind === 'fhir' ? (INTERACTIONS[at % 43] ?? 'read') : undefined,
    allowed: at % 47 > 0,
    status: STATUSES[at % 53] ?? 200,
    ...(patients.length > 1 ? { patients } : { patient: patients[0] }),
    client: `app${at % 37}`,
    fhirUser: at % 59 === 0 ? 'Patient/ada' : `Practitioner/${at % 31}`,
    subject: `account${at % 7}`,
    launch: `launch${at % 29}`,
    requestId: `request${at % 61}`,
    address: `10.0.0.${at % 23}`,
  }
}

function nameMany(existing: string, count: number): readonly string[] {
  return [existing, ...Array.from({ length: count - 1 }, (_, at) => `absent${at}`)]
}

const FILTERS: Readonly<Record<string, RecordFilter>> = {
  all: {},
  'a time': { since: 1010, before: 1060 },
  'an address at a time': { address: '10.0.0.5', since: 1010, before: 1060 },
  'an address and a patient': { address: '10.0.0.3', patients: ['ada'] },
  'an id': { ids: [7, 9, 100_000] },
  'a rare kind': { events: [{ kind: 'login' }] },
  'two rare interactions': {
    events: ['delete', 'create'].map(interaction => ({ kind: 'fhir', interaction })),
  },
  'a frequent kind': { events: [{ kind: 'fhir' }] },
  'refused requests': { allowed: false },
  'serious failures': { outcomes: ['8'] },
  successes: { outcomes: ['0'] },
  'a patient': { patients: ['ada'] },
  'several patients': { patients: ['ada', 'cleo'] },
  'no patient': { patients: [] },
  'many patients': { patients: nameMany('ada', 50) },
  'a patient, whoever acted': { filedUnder: 'ada' },
  'a patient and a subject': { filedUnder: 'ada', actor: { subjects: ['account3'] } },
  'whoever acted': { actor: { subjects: ['account3'], fhirUsers: ['Practitioner/1'], operators: ['x@y'] } },
  'an account': { actor: { subjects: ['account3', 'absent'] } },
  'whoever acted, by the FHIR user alone': { actor: { fhirUsers: ['Practitioner/1'] } },
  'many patients alone': { onlyPatients: nameMany('ada', 50) },
  'many ids': { ids: Array.from({ length: 1000 }, (_, at) => 1 + 50 * at) },
  'many users': { users: nameMany('Practitioner/1', 300) },
  'a patient alone': { onlyPatients: ['ada'] },
  'a user': { users: ['Practitioner/1'] },
  'an app': { clients: ['app2'] },
  'a launch': { launch: 'launch5' },
  'the reference of a failed request': { reference: 'request3' },
  'apps other than one': { otherThanClient: 'app2', events: [{ kind: 'fhir' }] },
  'an app, a kind and a time': { clients: ['app1'], events: [{ kind: 'token' }], since: 1000 },
  'a patient alone and a launch': { onlyPatients: ['ada', 'p9'], launch: 'launch5' },
  'a patient and an outcome': { patients: ['bea'], outcomes: ['4', '8'] },
}

function isMatch(record: KeptRecord, filter: RecordFilter): boolean {
  const { patient_id: patient, kind, interaction, allowed, status, at } = record
  const among = record.patients?.trim().split(' ') ?? [patient]
  const outcome = status >= 500 || status === 0 ? '8' : allowed && status < 400 ? '0' : '4'
  return [
    filter.ids?.includes(record.id),
    filter.since === undefined || at >= filter.since,
    filter.before === undefined || at < filter.before,
    filter.events?.some(it => it.kind === kind && (it.interaction ?? interaction) === interaction),
    filter.allowed === undefined || filter.allowed === allowed,
    filter.outcomes?.includes(outcome),
    filter.patients?.some(id => among.includes(id) || record.fhir_user === `Patient/${id}`),
    filter.filedUnder === undefined || among.includes(filter.filedUnder),
    filter.actor === undefined ||
      filter.actor.subjects?.includes(record.subject ?? '') ||
      filter.actor.fhirUsers?.includes(record.fhir_user ?? '') ||
      false,
    filter.onlyPatients?.some(id => id === patient),
    filter.users?.some(user => user === record.fhir_user),
    filter.clients === undefined || filter.clients.includes(record.client_id ?? ''),
    filter.otherThanClient === undefined || filter.otherThanClient !== record.client_id,
    filter.launch === undefined || filter.launch === record.launch_id,
    filter.address === undefined || filter.address === record.address,
    filter.reference === undefined ||
      (filter.reference === record.request_id && (!allowed || outcome !== '0')),
  ].every(it => it !== false)
}

eachDatabase((_, open) => {
  describe('the records of a filter', () => {
    let store: Store
    let all: readonly KeptRecord[]
    before(async () => {
      store = await open()
      await fill(store)
      all = await (await store.trail.read())
        .selectFrom('audit_event')
        .selectAll()
        .orderBy('at')
        .orderBy('id')
        .execute()
    })

    for (const [title, filter] of Object.entries(FILTERS))
      it(`are found in both orders, page by page, and counted: ${title}`, async () => {
        const expected = all.filter(record => isMatch(record, filter)).map(({ id }) => id)
        for (const order of ['oldest', 'newest'] as const) {
          const found = await listIds(store, { ...filter, order, limit: 450 })
          assert.deepEqual(order === 'oldest' ? found : found.toReversed(), expected)
        }
        assert.equal((await countRecords(store, filter))?.records, expected.length)
      })

    it('include the first OAuth events of each launch', async () => {
      const launches = ['launch0', 'launch1', 'launch100']
      const found = await findFirstOAuthEvents(store, launches, 3)
      const expected = launches.flatMap(launch =>
        all.filter(it => it.launch_id === launch && /^(token|refresh)$/.test(it.kind)).slice(0, 3),
      )
      assert.ok(expected.length > 3)
      assert.deepEqual(new Set(found.map(({ id }) => id)), new Set(expected.map(({ id }) => id)))
      assert.equal((await listParties(store)).clients.length, 37)
    })

    it('are looked for in at most 2,000 rows at once (AUDIT-16)', async () => {
      const filter = { outcomes: ['0'], events: [{ kind: 'admin' }, { kind: 'fhir' }], before: 1001 } as const
      const first = await findPage(store, {
        events: [{ kind: 'admin' }, { kind: 'fhir', interaction: null }],
        limit: 5,
      })
      assert.deepEqual([first.records, first.next?.at], [[], 1025])
      const second = await findPage(store, { ...filter, after: { at: 1001, id: 0 }, limit: 5 })
      assert.equal(second.next, undefined)
    })

    it('end where the last row of the permitted patients was read, although another index has fewer', async () => {
      const other = await open()
      const rows = [
        ...Array.from({ length: 2001 }, (_, at) => ({ at: 10 + at, patient: 'ada' })),
        ...Array.from({ length: 5 }, (_, at) => ({ at, patient: 'bea', launch: 'rare' })),
      ]
      await other.trail.append(rows.map(row => toRow({ ...createRecord(100), ...row, patients: undefined })))
      const { next } = await findPage(other, { onlyPatients: ['ada'], launch: 'rare', limit: 5 })
      assert.equal(next?.at, 11)
    })

    it('of an account are found at once, however many newer ones others have (AUDIT-16)', async () => {
      const other = await open()
      const rows = Array.from({ length: 2_500 }, (_, at) => ({
        ...createRecord(100),
        at: 10 + at,
        subject: at < 3 ? 'rare' : 'other',
      }))
      await other.trail.append(rows.map(row => toRow(row)))
      const { records } = await findPage(other, { actor: { subjects: ['rare'] }, limit: 5 })
      assert.deepEqual(
        records.map(({ at }) => at),
        [12, 11, 10],
      )
      const commands = await findPage(other, { actor: { subjects: ['rare'], operators: ['x@y'] }, limit: 5 })
      assert.equal(commands.records.length, 3)
    })

    it('of changes to an account, an app or a grant are found, also those of earlier versions (AUDIT-16)', async () => {
      const other = await open()
      const event = { server: 'auth', kind: 'admin', allowed: true, status: 200, method: 'admin' } as const
      const revoked = { ...event, request: 'grant revoke g', type: 'grant', id: 'g' }
      const records: readonly Omit<AuditRecord, 'at'>[] = [
        { ...event, request: 'clinician disable ada', type: 'account', id: 'a1' },
        { ...event, request: 'clinician disable ada', type: 'account', id: 'a2' },
        { ...event, request: 'clinician disable ada' },
        { ...event, method: undefined, subject: 'a1', reason: 'Password changed' },
        { ...event, method: undefined, subject: 'a1', reason: 'Not an administrator', allowed: false },
        { ...event, subject: 'a1', request: 'client set growth', type: 'client', id: 'growth' },
        { ...revoked, details: { before: { client_id: 'growth', clinician_id: 'a1' } } },
        { ...event, kind: 'register', client: 'growth' },
        { ...event, kind: 'revoke', client: 'growth', launch: 'g' },
        { ...event, kind: 'revoke', client: 'growth', launch: 'other' },
      ]
      const listed = Array.from({ length: 2_100 }, () => ({ ...event, request: 'audit list' }))
      await other.trail.append([...records, ...listed].map((one, at) => toRow({ ...one, at })))
      const find = async (target: NonNullable<RecordFilter['target']>) =>
        (await findPage(other, { target, order: 'oldest', limit: 50 })).records.map(({ at }) => at)
      const requests = ['clinician disable ada', 'clinician enable ada']
      assert.deepEqual(await find({ accounts: ['a1'], requests }), [0, 2, 3, 6])
      assert.deepEqual(await find({ clients: ['growth'] }), [5, 6, 7])
      assert.deepEqual(await find({ grants: ['g'] }), [6, 8])
      assert.deepEqual(await find({}), [])
      await assertIndexed(other, watched =>
        findPage(watched, { target: { accounts: ['a1'], grants: ['g'], requests }, limit: 5 }),
      )
    })

    it('have no patients left after they are deleted', async () => {
      const other = await open()
      await other.trail.append([toRow(createRecord(3)), toRow(createRecord(4))])
      assert.equal(await sweepAudit(other, sealer, { days: 1 }, Date.now()), 0)
      await other.trail.append([toRow(createRecord(100))])
      assert.equal(await sweepAudit(other, sealer, { days: 1 }, Date.now()), 2)
      assert.deepEqual(await other.db.selectFrom('audit_event_patient').selectAll().execute(), [])
    })
  })

  describe('the plans of searches and sweeps', () => {
    let store: Store
    before(async () => {
      store = await open()
      await fill(store)
    })

    for (const [title, filter] of Object.entries(FILTERS))
      it(`read indexes only: ${title} (AUDIT-16)`, async () => {
        const page = { ...filter, after: { at: 1250, id: 1000 }, limit: 5 }
        await assertIndexed(store, watched => findPage(watched, page))
        await assertIndexed(store, watched => findPage(watched, { ...page, order: 'oldest' }))
        await assertIndexed(store, watched => countRecords(watched, filter))
      })

    it('read indexes only: the first OAuth events of launches, and the newest apps and patients', async () => {
      await assertIndexed(store, watched => findFirstOAuthEvents(watched, ['launch1', 'launch2'], 5))
      await assertIndexed(store, watched => listParties(watched))
      await assertIndexed(store, watched => findLastTokens(watched, ['launch1', 'launch2']))
      const own = { subject: 'ada', kinds: ['authorize'] as const, limit: 5 }
      await assertIndexed(store, watched => findOwnEvents(watched, own))
      await assertIndexed(store, watched => findOwnEvents(watched, { ...own, after: { at: 1, id: 1 } }))
    })

    it('read indexes only: rows that expired (STORE-5)', async () => {
      await assertIndexed(store, watched => sweep(watched, 1))
      await assertIndexed(store, watched => sweepAudit(watched, sealer, { days: 1 }, 1))
    })
  })
})

async function fill(store: Store): Promise<void> {
  await store.trail.append(Array.from({ length: 2100 }, (_, at) => toRow(createRecord(at))))
  await sql.raw(store.dialect === 'sqlite' ? 'analyze' : 'vacuum analyze audit_event').execute(store.db)
}

async function listIds(store: Store, options: FindOptions): Promise<readonly number[]> {
  const found: number[] = []
  let after: FindOptions['after']
  for (;;) {
    const records = await findRecords(store, { ...options, after })
    found.push(...records.map(({ id }) => id))
    after = records.at(-1)
    if (records.length < options.limit) return found
  }
}

/** Tables with so few rows that they need no index. */
const SHORT_TABLES = /signing_key|pg_locks/

async function assertIndexed(store: Store, use: (watched: Store) => Promise<unknown>): Promise<void> {
  const statements: CompiledQuery[] = []
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      statements.push(compile(store, node))
      return node
    },
    transformResult: async ({ result }) => result,
  }
  await use({ ...store, db: store.db.withPlugin(plugin) })
  for (const statement of statements) {
    if (SHORT_TABLES.test(statement.sql)) continue
    const plan = await explain(store, statement)
    assert.deepEqual(FIND_SCANS[store.dialect](plan), [], `${statement.sql}\n${plan.join('\n')}`)
  }
}

function compile({ db }: Store, node: RootOperationNode): CompiledQuery {
  return db.getExecutor().compileQuery(node, createQueryId())
}

async function explain(
  { db, dialect }: Store,
  { sql: text, parameters }: CompiledQuery,
): Promise<readonly string[]> {
  const explained = dialect === 'sqlite' ? `explain query plan ${text}` : `explain ${text}`
  const rows = await db.transaction().execute(async trx => {
    if (dialect === 'postgres')
      for (const way of ['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin'])
        await sql.raw(`set local enable_${way} = off`).execute(trx)
    return (await trx.executeQuery<Record<string, unknown>>(CompiledQuery.raw(explained, [...parameters])))
      .rows
  })
  return rows.map(row => String(row.detail ?? row['QUERY PLAN']))
}

/** The steps that read more rows than an index range has. */
const FIND_SCANS: Readonly<Record<Store['dialect'], (plan: readonly string[]) => readonly string[]>> = {
  sqlite: plan =>
    plan.filter(step => /^SCAN (?!page|found|event|\(subquery)/.test(step) && !step.includes('INDEX')),
  // PostgreSQL always finds an index, and then filters its rows. Only one row, or rows that a range found, may be filtered.
  postgres: plan =>
    plan.filter(
      (step, at) =>
        /Seq Scan on /.test(step) ||
        (/^ *Filter:/.test(step) &&
          !/_pkey|Subquery Scan|Tid Scan/.test(
            plan[at - 1 - Number(/Cond:/.test(plan[at - 1] ?? ''))] ?? '',
          )),
    ),
}
