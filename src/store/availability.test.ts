import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { eachDatabase } from '../../test/support/databases.ts'
import { createAuditor, findRecords } from '../audit/index.ts'
import { refuseRecords } from '../audit/testing/audited-fhir.ts'
import { watchAvailability } from './availability.ts'
import { checkSchema } from './check-schema.ts'
import { describeUnavailable, isDatabaseUnavailable, openStore } from './index.ts'
import { migrations } from './migrations/index.ts'
import { run } from './open-store.ts'

const failure = (code: object) => Object.assign(new Error('refused'), code)

describe('isDatabaseUnavailable', () => {
  it('recognizes outages by SQLSTATE and SQLite code', () => {
    for (const code of ['08006', '53300', '57P03', '58030', '25006', '40001', '40P01'])
      assert.ok(isDatabaseUnavailable(failure({ code })), code)
    for (const errcode of [5, 8, 10, 13, 8 + 256, 10 + 3 * 256])
      assert.ok(isDatabaseUnavailable(failure({ errcode })), String(errcode))
    assert.ok(isDatabaseUnavailable(new Error('Cannot do it', { cause: failure({ errcode: 13 }) })))
    for (const other of [failure({ code: '23505' }), failure({ errcode: 19 }), new Error('x'), undefined])
      assert.ok(!isDatabaseUnavailable(other))
  })

  it('counts a broken connection only if it is that of the database (HTTP-9)', () => {
    const availability = watchAvailability({ tryWrite: async () => {} })
    const reset = failure({ code: 'ECONNRESET' })
    const failures = [
      reset,
      new AggregateError([failure({ code: 'ECONNREFUSED' })]),
      new Error('', { cause: reset }),
    ]
    for (const error of failures) assert.ok(!isDatabaseUnavailable(error), String(error))
    for (const error of failures.slice(0, 2)) availability.report(error)
    for (const error of failures) assert.ok(isDatabaseUnavailable(error), String(error))
  })

  it('describes the outage without a host or file name', () => {
    assert.equal(describeUnavailable(failure({ code: '25006' })), 'it is read-only')
    assert.equal(describeUnavailable(new Error('x', { cause: failure({ errcode: 13 }) })), 'its disk is full')
    assert.equal(
      describeUnavailable(failure({ errcode: 10 + 3 * 256 })),
      'its disk cannot be read or written',
    )
    assert.equal(describeUnavailable(failure({ code: '58030' })), 'its disk cannot be read or written')
    assert.equal(describeUnavailable(failure({ code: 'ECONNREFUSED' })), undefined)
  })
})

describe('watchAvailability', () => {
  function watch(whileInUse = false) {
    const state = { now: 0, writes: 0, thorough: 0, error: undefined as Error | undefined }
    const tryWrite = async (mayBeFull: boolean) => {
      state.writes++
      if (mayBeFull) state.thorough++
      if (state.error) throw state.error
    }
    const availability = watchAvailability({ tryWrite, clock: () => state.now, whileInUse })
    availability.begin()
    return { state, ...availability }
  }
  const full = failure({ errcode: 13 })

  it('tries a write at most every two seconds (START-4)', async () => {
    const { state, probe } = watch()
    await Promise.all([probe(), probe()])
    state.now = 1999
    await probe()
    assert.equal(state.writes, 1)
    state.now = 2000
    await probe()
    assert.equal(state.writes, 2)
  })

  it('fails every use at once while the last write failed, until a write succeeds (HTTP-9)', async () => {
    const { state, enter, report } = watch()
    await enter()
    assert.equal(state.writes, 0)
    state.error = full
    report(full)
    await new Promise(setImmediate)
    await assert.rejects(enter(), /a write failed/)
    state.error = undefined
    await assert.rejects(enter(), /a write failed/)
    assert.equal(state.writes, 1)
    state.now = 2000
    await enter()
    assert.equal(state.writes, 2)
  })

  it('tries a larger write after the disk was full, until one succeeds (START-4)', async () => {
    const { state, probe, report } = watch()
    await probe()
    state.error = full
    report(full)
    await assert.rejects(probe(), full)
    state.now = 2000
    await assert.rejects(probe(), full)
    state.error = undefined
    state.now = 4000
    await probe()
    assert.equal(state.thorough, 3)
    state.now = 6000
    await probe()
    assert.deepEqual([state.writes, state.thorough], [5, 3])
  })

  it('tries writes while the database is in use if it may stop responding without an error', async () => {
    const { state, enter } = watch(true)
    await enter()
    assert.equal(state.writes, 1)
  })

  it('does not treat a conflict or a refused value as an outage', async () => {
    const { state, enter, report } = watch()
    report(failure({ code: '23505' }))
    report(failure({ code: '40001' }))
    await enter()
    assert.equal(state.writes, 0)
  })
})

eachDatabase((name, open, create) => {
  describe('Store.ping', () => {
    it('rejects while the audit trail does not accept writes, and then every use of the store fails at once', async () => {
      let now = 0
      const store = await openStore(await create(), { clock: () => now })
      await store.ping()
      const allow = await refuseRecords(store, { table: 'audit_intent', probe: true })
      now = 2000
      await assert.rejects(store.ping())
      await assert.rejects(store.db.selectFrom('client').selectAll().execute(), isDatabaseUnavailable)
      await assert.rejects(store.trail.append([]), isDatabaseUnavailable)
      await assert.rejects(allow(), isDatabaseUnavailable)
      await store.close()
    })
  })

  describe('the ids of the audit trail', () => {
    it('have no holes, however often the store is probed and a record is delivered', async () => {
      let now = 0
      const store = await openStore(await create(), { clock: () => now })
      const auditor = createAuditor({ store })
      const record = { at: 1, server: 'fhir', kind: 'fhir', allowed: true, status: 200 } as const
      const deliveries = ['a', 'b'].map(id => ({ id, record }))
      for (let time = 0; time < 5; time++) {
        now += 2000
        await store.ping()
        await auditor.redeliver(deliveries)
        await auditor.record(record)
      }
      const rows = await findRecords(store, { limit: 100, order: 'oldest' })
      assert.deepEqual(
        rows.map(({ id }) => id).toSorted((a, b) => a - b),
        [1, 2, 3, 4, 5, 6, 7],
      )
      await store.close()
    })
  })

  describe('Store.ping if requests do not depend on the audit trail', () => {
    it('resolves while only the audit trail does not accept writes', async () => {
      const store = await openStore(await create(), { auditRequired: false })
      await refuseRecords(store, { probe: true })
      await store.ping()
      await store.db.selectFrom('client').selectAll().execute()
      await store.close()
    })
  })

  describe('openStore', () => {
    it('rejects a schema of another version with one line that says what to do (STORE-4)', async () => {
      const url = await create()
      const store = await openStore(url)
      await sql`alter table audit_event rename column patients to patient_list`.execute(store.db)
      await store.close()
      const line =
        /^Cannot open database \S+: its schema does not match .*audit_event\.patients is missing\); restore/
      await assert.rejects(openStore(url), { message: line })
    })

    it('rejects a schema without one of its indexes (STORE-4)', async () => {
      const url = await create()
      const store = await openStore(url)
      await sql`drop index client_approved`.execute(store.db)
      await store.close()
      await assert.rejects(openStore(url), /does not match .*\(index client_approved is missing\); restore/)
    })

    it('rejects a database in which somebody else created one of its tables (STORE-4)', async () => {
      const url = await create()
      const store = await openStore(url)
      await sql`drop table schema_migration`.execute(store.db)
      await store.close()
      await assert.rejects(openStore(url), /does not match .*\(table \w+ was not created by a migration\)/)
    })

    it('accepts an additional column that needs no value', async () => {
      const url = await create()
      const store = await openStore(url)
      await sql`alter table clinician add column note text`.execute(store.db)
      await store.close()
      await (await openStore(url)).close()
    })

    it('rejects an additional column that needs a value', async () => {
      const store = await open()
      await sql`drop table app_key`.execute(store.db)
      await sql`create table app_key (generation integer primary key, public_jwk text, private_jwk_sealed text,
                created_at bigint, badge text not null)`.execute(store.db)
      await assert.rejects(run(store.db, checkSchema(migrations, store.dialect)), /app_key\.badge is unknown/)
    })
  })

  if (name === 'PostgreSQL')
    describe('a standby', () => {
      it('is detected by the error of a write', async () => {
        const { db } = await open()
        const written = db.transaction().execute(async trx => {
          await sql`set transaction read only`.execute(trx)
          await trx.deleteFrom('client').execute()
        })
        await assert.rejects(written, error => {
          assert.ok(isDatabaseUnavailable(error))
          return describeUnavailable(error) === 'it is read-only'
        })
      })

      it('stops the start with a message', async () => {
        const standby = new URL(await create('empty'))
        const options = standby.searchParams.get('options') ?? ''
        standby.searchParams.set('options', `${options} -c default_transaction_read_only=on`)
        await assert.rejects(
          openStore(standby.href),
          /^Error: Cannot open database .*: it is read-only \(cannot /,
        )
      })
    })
})
