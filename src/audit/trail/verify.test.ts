import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { eachDatabase } from '../../../test/support/databases.ts'
import type { AuditRecord } from '../../audit-record/index.ts'
import { createSealer, type Store } from '../../store/index.ts'
import { toRow } from '../to-row.ts'
import { createSettledFinder } from './follow.ts'
import { createSealMaker, findLastSeal, formatHead, recordHead, sealTrail, sweepAudit } from './seal.ts'
import { verifyTrail } from './verify.ts'

const sealer = createSealer('a secret of the tests, long enough')
const DAY = 86_400_000

const createRecord = (at: number): AuditRecord => ({
  at,
  server: 'fhir',
  kind: 'fhir',
  allowed: true,
  status: 200,
  request: `Condition/${at}`,
  ...(at % 3 === 2 ? { patients: ['ada', `p${at}`, '*'] } : { patient: `p${at % 7}` }),
})

/** The id of a record is its time. */
const createRow = (at: number) => ({ ...toRow(createRecord(at)), id: at })

async function add(store: Store, ...ats: readonly number[]): Promise<void> {
  // The probe of PostgreSQL adds a record by the sequence, whose ids these rows have.
  if (store.dialect === 'postgres') await run(store, "select setval('audit_event_id_seq', 1000)")
  await store.trail.append(ats.map(createRow))
}

/** Three seals with three records each. */
async function fill(store: Store): Promise<void> {
  for (const at of [1, 4, 7]) {
    await add(store, at, at + 1, at + 2)
    await sealTrail(store, sealer)
  }
}

const run = (store: Store, text: string) => sql.raw(text).execute(store.db)

/** Acts of somebody who can write to the database and does not know the secret. */
const TAMPERING: Readonly<Record<string, readonly [statements: readonly string[], found: RegExp]>> = {
  'a changed record': [
    [`update audit_event set patient_id = 'other' where id = 5`],
    /^Records 4 to 6 \(seal 2\): changed$/,
  ],
  'a removed record': [[`delete from audit_event where id = 5`], /^Records 4 to 6 \(seal 2\): 1 removed$/],
  'an inserted record': [
    [
      `update audit_event set id = 100 where id = 6`,
      `insert into audit_event (id, at, server, kind, allowed, status)
       values (6, 5, 'fhir', 'fhir', true, 200)`,
    ],
    /^Records 4 to 6 \(seal 2\): changed$/,
  ],
  'two records in another order': [
    [
      `update audit_event set id = 100 where id = 4`,
      `update audit_event set id = 4 where id = 5`,
      `update audit_event set id = 5 where id = 100`,
    ],
    /^Records 4 to 6 \(seal 2\): changed$/,
  ],
  'a removed seal with its records': [
    [`delete from audit_event where id between 4 and 6`, `delete from audit_seal where number = 2`],
    /^Seal 2 is missing$/,
  ],
  'a seal with a recomputed hash': [
    [`update audit_seal set hash = 'made by somebody else' where number = 3`],
    /^Seal 3 was changed, or made with another SMART_SECRET$/,
  ],
  'a removed link to a patient': [
    [`delete from audit_event_patient where patient_id = 'ada' and audit_id = 5`],
    /^Record 5 \(seal 2\): filed under other patients$/,
  ],
  'removed links of two records': [
    [`delete from audit_event_patient where patient_id = 'ada' and audit_id in (2, 5)`],
    /^Record 2 \(seal 1\): filed under other patients$/,
  ],
  'a link to another time, which a search by time does not find': [
    [`update audit_event_patient set at = 1 where patient_id = 'ada' and audit_id = 5`],
    /^Record 5 \(seal 2\): filed under other patients$/,
  ],
  'a link that was added to a record about several patients': [
    [`insert into audit_event_patient (patient_id, at, audit_id) values ('bea', 5, 5)`],
    /^Record 5 \(seal 2\): filed under other patients$/,
  ],
  'a link that was added to a record about one patient': [
    [`insert into audit_event_patient (patient_id, at, audit_id) values ('bea', 4, 4)`],
    /^Record 4 \(seal 2\): filed under other patients$/,
  ],
  'a link for a later record': [
    [`insert into audit_event_patient (patient_id, at, audit_id) values ('bea', 50, 50)`],
    /^Links to patients without a record: 1$/,
  ],
  'an invented checkpoint': [
    [
      `delete from audit_event where id <= 6`,
      `delete from audit_seal where number = 1`,
      `update audit_seal set checkpoint_sealed = hash_sealed where number = 2`,
    ],
    /^Seal 1 is missing$/,
  ],
}

/** Changes that are undone at the end. */
async function tryOut(store: Store, work: (store: Store) => Promise<void>): Promise<void> {
  const trx = await store.db.startTransaction().execute()
  try {
    await work({ ...store, db: trx })
  } finally {
    await trx.rollback().execute()
  }
}

eachDatabase((_, openAny) => {
  async function open(): Promise<Store> {
    const store = await openAny()
    if (store.dialect === 'postgres') await run(store, 'alter sequence audit_event_id_seq restart with 10')
    return store
  }

  describe('verifyTrail', () => {
    let tampered: Store
    before(async () => {
      tampered = await open()
      await fill(tampered)
    })

    it('finds nothing in a trail that only grew (AUDIT-17)', async () => {
      const store = await open()
      assert.deepEqual(await verifyTrail(store, sealer), {
        seals: 0,
        records: 0,
        unsealed: 0,
        head: undefined,
        problems: [],
      })
      await fill(store)
      const { head, ...found } = await verifyTrail(store, sealer)
      assert.deepEqual(found, { seals: 3, records: 9, unsealed: 0, problems: [] })
      await add(store, 10)
      const later = await verifyTrail(store, sealer, { head })
      assert.deepEqual([later.unsealed, later.problems], [1, []])
    })

    for (const [title, [statements, found]] of Object.entries(TAMPERING))
      it(`finds ${title} (AUDIT-17)`, async () => {
        await tryOut(tampered, async store => {
          for (const statement of statements) await run(store, statement)
          const { problems } = await verifyTrail(store, sealer)
          assert.ok(
            problems.some(problem => found.test(problem)),
            problems.join(),
          )
        })
      })

    it('finds a removed end by an earlier head, by a recorded head, and by the position of a feed (AUDIT-17)', async () => {
      const store = await open()
      await fill(store)
      const { head } = await verifyTrail(store, sealer)
      await recordHead(store, 1)
      await recordHead(store, DAY)
      await sealTrail(store, sealer)
      assert.deepEqual((await verifyTrail(store, sealer)).problems, [])
      const feed = { feed: 'feed', last_id: 10, moved_at: 1 }
      await store.db.insertInto('audit_cursor').values(feed).execute()
      await run(store, 'delete from audit_seal where number >= 3')
      await run(store, 'delete from audit_event where id between 7 and 9')
      await sealTrail(store, sealer)
      const [named, missing] = (await verifyTrail(store, sealer, { head })).problems
      assert.match(named ?? '', /^The seal that record \d+ names has changed$/)
      assert.equal(
        missing,
        `The trail does not contain the head ${head}. Check that you copied it exactly. If you did, the end of the trail was removed, or the trail was replaced`,
      )
      await run(store, 'delete from audit_event where id >= 10')
      assert.match(String((await verifyTrail(store, sealer)).problems.at(-1)), /^The feed has sent record 10/)
    })

    it('begins after the records that were removed after their retention time (AUDIT-17, AUDIT-20)', async () => {
      const store = await open()
      await fill(store)
      assert.equal(await sweepAudit(store, sealer, { days: 1 }, DAY + 5), 3)
      await add(store, 2 * DAY)
      await sealTrail(store, sealer)
      const { head, ...found } = await verifyTrail(store, sealer)
      assert.deepEqual(found, { seals: 3, records: 7, unsealed: 0, problems: [] })
      assert.equal(head, formatHead((await findLastSeal(store)) ?? assert.fail()))
      assert.equal(await sweepAudit(store, sealer, { days: 1, feeds: ['feed'] }, 3 * DAY), 0)
      await run(store, 'delete from audit_event where id = 4')
      assert.deepEqual((await verifyTrail(store, sealer)).problems, ['Records 4 to 6 (seal 2): 1 removed'])
    })
  })

  describe('createSealMaker', () => {
    it('does not continue a chain that was made without the secret or shortened (AUDIT-17)', async () => {
      const store = await open()
      const maker = createSealMaker(store, sealer)
      await fill(store)
      const read = async () =>
        (await store.trail.read()).selectFrom('audit_event').selectAll().where('id', '>', 9).execute()
      await add(store, 10)
      const { signal } = new AbortController()
      await maker.process(await read(), 9, signal)
      const other = createSealMaker(store, createSealer('another secret, long enough'))
      await assert.rejects(other.process(await read(), 10, signal), /seal 4 was changed/)
      await run(store, 'delete from audit_seal where number > 2')
      await assert.rejects(maker.process(await read(), 6, signal), /seal 3 was removed/)
    })

    it('seals few records at once if they have many patients', async () => {
      const store = await open()
      const patients = Array.from({ length: 4000 }, (_, at) => `patient-number-${at}`)
      await store.trail.append(
        [1, 2, 3, 4, 5, 6].map(at => toRow({ ...createRecord(at), patient: undefined, patients })),
      )
      await sealTrail(store, sealer)
      const { seals, records, problems } = await verifyTrail(store, sealer)
      assert.deepEqual([seals, records, problems], [3, 6, []])
    })

    it('makes one seal for the same records in two processes', async () => {
      const store = await open()
      await add(store, 1, 2, 3)
      await Promise.all([sealTrail(store, sealer), sealTrail(store, sealer)])
      const { seals, records, problems } = await verifyTrail(store, sealer)
      assert.deepEqual([seals, records, problems], [1, 3, []])
    })
  })

  describe('createSettledFinder', () => {
    it('leaves out records after one whose transaction has not ended', async () => {
      const store = await open()
      const findSettledId = createSettledFinder(store)
      // The test of availability also writes.
      const reach = async (id: number) => {
        while ((await findSettledId()) !== id) await pause(5)
      }
      await add(store, 1)
      await reach(1)
      await store.db.transaction().execute(async trx => {
        await trx.insertInto('audit_event').values(createRow(2)).execute()
        if (store.dialect === 'postgres') await add(store, 3)
        for (const _ of [1, 2, 3]) assert.equal(await findSettledId(), 1)
      })
      await reach(store.dialect === 'postgres' ? 3 : 2)
    })
  })
})
