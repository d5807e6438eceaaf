import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eachDatabase } from '../../test/support/databases.ts'
import { KINDS_COUNTED, SUBJECTS_COUNTED } from '../audit-record/index.ts'
import { validate } from '../fhir/index.ts'
import { createSealer, DatabaseUnavailable, type Store } from '../store/index.ts'
import {
  type AuditRecord,
  AuditUnavailable,
  countRecords,
  createAuditor,
  findRecords,
  OUTCOME_UNKNOWN,
  reportUnknownOutcomes,
  sweepAudit,
  toAuditEvent,
} from './index.ts'
import { refuseRecords } from './testing/audited-fhir.ts'
import { createEventIds } from './trail/event-ids.ts'
import type { FindOptions } from './trail/find.ts'

const ids = createEventIds(Buffer.alloc(32))

const sealer = createSealer('a secret of the tests, long enough')

const record = (more: Partial<AuditRecord> = {}): AuditRecord => ({
  at: 1000,
  server: 'fhir',
  kind: 'fhir',
  allowed: true,
  status: 200,
  ...more,
})

eachDatabase((_name, open) => {
  describe('createAuditor', () => {
    it('stores records before it resolves, and finds them by their subject', async () => {
      const store = await open()
      const auditor = createAuditor({ store })
      await Promise.all([
        auditor.record(record({ patient: 'ada', client: 'app', launch: 'l1', by: 'patient/Patient.rs' })),
        auditor.record(record({ at: 2000, allowed: false, status: 403, patient: 'bea', reason: 'No' })),
        auditor.record(record({ at: 3000, kind: 'login', server: 'auth' }), record({ at: 4000 })),
      ])
      const ats = async (filter: Partial<FindOptions>) =>
        (await findRecords(store, { ...filter, limit: 10 })).map(({ at }) => at)
      assert.deepEqual(await ats({}), [4000, 3000, 2000, 1000])
      assert.deepEqual(await ats({ order: 'oldest' }), [1000, 2000, 3000, 4000])
      assert.deepEqual(await ats({ patients: ['ada', 'bea'] }), [2000, 1000])
      assert.deepEqual(await ats({ patients: [] }), [])
      assert.deepEqual(await ats({ clients: ['app'] }), [1000])
      assert.deepEqual(await ats({ launch: 'l1' }), [1000])
      assert.deepEqual(await ats({ allowed: false }), [2000])
      assert.deepEqual(await ats({ events: [{ kind: 'login' }] }), [3000])
      assert.deepEqual(await ats({ since: 2000, before: 4000 }), [3000, 2000])
      const [newest] = await findRecords(store, { limit: 1 })
      assert.ok(newest)
      assert.deepEqual(await ats({ after: newest }), [3000, 2000, 1000])
    })

    it('stores as many anonymous requests of a kind and source in full as the option says', async () => {
      const store = await open()
      const auditor = createAuditor({ store, clock: () => 1000, fullRecords: 3 })
      for (let number = 0; number < 5; number++)
        await auditor.record(record({ at: 1000, anonymous: true, requestId: `r${number}` }))
      await auditor.flush()
      const kept = await findRecords(store, { limit: 10, order: 'oldest' })
      assert.deepEqual(
        kept.map(it => it.request_id ?? it.repeats),
        ['r0', 'r1', 'r2', 2],
      )
    })

    it('stores the first anonymous request of a kind and source, and counts the rest of its minute (AUDIT-12)', async () => {
      const store = await open()
      let now = 1000
      const auditor = createAuditor({ store, clock: () => now })
      const rows = async () =>
        (await findRecords(store, { limit: 1000, order: 'oldest' })).map(it => [
          it.at,
          it.kind,
          it.reason,
          it.address,
          it.request,
          it.request_id,
          it.repeats,
        ])
      const stranger = (more: Partial<AuditRecord>) =>
        record({ at: now, allowed: false, status: 401, anonymous: true, reason: 'No token', ...more })
      for (let number = 0; number < 4; number++)
        await auditor.record(
          stranger({ address: 'a', request: `Patient/${number}`, requestId: `r${number}` }),
        )
      await auditor.record(stranger({ address: 'b' }), stranger({ address: 'b', reason: 'Expired' }))
      await auditor.record(record({ at: now, client: 'app' }), record({ at: now, client: 'app' }))
      const first = [
        [1000, 'fhir', 'No token', 'a', 'Patient/0', 'r0', null],
        [1000, 'fhir', 'No token', 'b', null, null, null],
        [1000, 'fhir', 'Expired', 'b', null, null, null],
        [1000, 'fhir', null, null, null, null, null],
        [1000, 'fhir', null, null, null, null, null],
      ]
      assert.deepEqual(await rows(), first)
      now = 61_000
      await auditor.record(stranger({ address: 'a' }))
      await auditor.flush()
      assert.deepEqual((await rows()).slice(first.length), [
        [61_000, 'fhir', 'No token', 'a', null, null, 3],
        [61_000, 'fhir', 'No token', 'a', null, null, null],
      ])
      assert.partialDeepStrictEqual(await countRecords(store, {}), { allowed: 2, refused: 7 })
    })

    it('stores few records of many kinds and sources, and counts all of them', async () => {
      const store = await open()
      let now = 1000
      const auditor = createAuditor({ store, clock: () => now })
      const kinds = ['fhir', 'login', 'token'] as const
      for (let minute = 0; minute < 3; minute++, now += 60_000)
        for (let number = 0; number < 200; number++)
          for (const kind of kinds)
            await auditor.record(
              record({ at: now, kind, allowed: false, status: 401, anonymous: true, address: `a${number}` }),
            )
      await auditor.flush()
      assert.partialDeepStrictEqual(await countRecords(store, {}), {
        allowed: 0,
        refused: 3 * 200 * kinds.length,
      })
      const kept = await findRecords(store, { limit: 1000 })
      assert.equal(kept.length, 3 * (KINDS_COUNTED + 1) * kinds.length)
    })

    it('stores every distinct mistake, if it tells more kinds apart (ACTIVITY-8)', async () => {
      const store = await open()
      const auditor = createAuditor({ store, clock: () => 1000, kinds: 200 })
      const mistakes = Array.from({ length: 30 }, (_, number) => `Mistake ${number}`)
      for (const reason of mistakes)
        await auditor.record(record({ allowed: false, status: 400, anonymous: true, reason }))
      const kept = await findRecords(store, { limit: 1000, order: 'oldest' })
      assert.deepEqual(
        kept.map(({ reason }) => reason),
        mistakes,
      )
    })

    it('names every clinician whose login failed, however many strangers fail at the same time', async () => {
      const store = await open()
      const auditor = createAuditor({ store, clock: () => 1000 })
      const failed = (address: string, subject?: string) =>
        auditor.record(
          record({
            server: 'auth',
            kind: 'login',
            allowed: false,
            status: 401,
            anonymous: true,
            address,
            subject,
          }),
        )
      for (let number = 0; number < 50; number++) await failed(`noise${number}`)
      for (let number = 0; number < 3; number++) await failed('attacker', 'target')
      await failed('elsewhere', 'target')
      await failed('elsewhere', 'other')
      await auditor.flush()
      const kept = await findRecords(store, { limit: 1000 })
      const of = (name: string | null) =>
        kept.filter(({ subject }) => subject === name).reduce((sum, { repeats }) => sum + (repeats ?? 1), 0)
      assert.deepEqual([of('target'), of('other'), of(null)], [4, 1, 50])

      for (let number = 0; number < 200; number++) await failed(`a${number}`, `clinician${number}`)
      await auditor.flush()
      const more = (await findRecords(store, { limit: 1000 })).length - kept.length
      assert.equal(more, KINDS_COUNTED + SUBJECTS_COUNTED + 1)
      assert.partialDeepStrictEqual(await countRecords(store, {}), { allowed: 0, refused: 255 })
    })

    it('stores an anonymous request in full after one that could not be stored', async () => {
      const store = await open()
      await refuseRecords(store, { client: 'app' })
      const auditor = createAuditor({ store })
      const refused = record({ allowed: false, status: 401, anonymous: true, client: 'app' })
      for (let at = 0; at <= KINDS_COUNTED; at++)
        await assert.rejects(auditor.record({ ...refused, address: `a${at}` }), AuditUnavailable)
      await assert.rejects(auditor.record(refused), AuditUnavailable)
      assert.deepEqual(await findRecords(store, { limit: 10 }), [])
    })

    it('truncates long texts', async () => {
      const store = await open()
      await createAuditor({ store }).record(record({ request: 'x'.repeat(1_000_000) }))
      const [kept] = await findRecords(store, { limit: 1 })
      assert.equal(kept?.request?.length, 2001)
    })

    it('fails the request of a record that the database refuses, and stores the others (AUDIT-11)', async () => {
      const store = await open()
      await refuseRecords(store, { client: 'refused' })
      const auditor = createAuditor({ store })
      const results = await Promise.allSettled([
        auditor.record(record({ at: 1 })),
        auditor.record(record({ at: 2, client: 'refused' })),
        auditor.record(record({ at: 3 }), record({ at: 4 })),
        auditor.record(record({ status: Number.NaN })),
      ])
      assert.deepEqual(
        results.map(({ status }) => status),
        ['fulfilled', 'rejected', 'fulfilled', 'rejected'],
      )
      const kept = await findRecords(store, { limit: 10, order: 'oldest' })
      assert.deepEqual(
        kept.map(({ at }) => at),
        [1, 3, 4],
      )
      await auditor.prepare()
      await auditor.record(record({ at: 5 }))
    })

    it('stores texts without the characters that PostgreSQL refuses', async () => {
      const store = await open()
      await createAuditor({ store }).record(record({ request: 'a\0b\ud800c', patients: ['x\0', 'y'] }))
      const [kept] = await findRecords(store, { limit: 1 })
      assert.deepEqual([kept?.request, kept?.patients], ['a\ufffdb\ufffdc', ' x\ufffd y '])
    })
  })

  describe('sweepAudit', () => {
    it('deletes the seals whose records are all older than the retention time (AUDIT-13)', async () => {
      const store = await open()
      const day = 86_400_000
      const old = Array.from({ length: 2500 }, (_, at) => record({ at }))
      await createAuditor({ store }).record(...old, record({ at: 365 * day }), record({ at: 366 * day }))
      assert.equal(await sweepAudit(store, sealer, { days: 365 }, 730 * day), 2500)
      assert.equal(await sweepAudit(store, sealer, { days: 365 }, 730 * day), 0)
      assert.equal((await findRecords(store, { limit: 1000 })).length, 2)
      assert.equal(await sweepAudit(store, sealer, { days: 1 }, 730 * day), 0)
      await createAuditor({ store }).record(record({ at: 730 * day }))
      assert.equal(await sweepAudit(store, sealer, { days: 1 }, 731 * day), 2)
    })
  })
})

eachDatabase((_name, open) => {
  describe('createAuditor while the store is unavailable', () => {
    async function awayStore() {
      const store = await open()
      const state = { unreachable: true, appends: 0 }
      const check = async () => {
        if (state.unreachable) throw new DatabaseUnavailable('Cannot filter database')
      }
      const { trail } = store
      const watch =
        <Row>(add: (rows: readonly Row[]) => Promise<void>) =>
        async (rows: readonly Row[]) => {
          state.appends++
          await check()
          await add(rows)
        }
      const watched = { ...trail, append: watch(trail.append), announce: watch(trail.announce) }
      return { state, store: { ...store, trail: watched, ping: check } }
    }

    it('refuses with 503, reports the lost records, and waits before it retries', async () => {
      const { state, store } = await awayStore()
      let now = 0
      const lost: (readonly AuditRecord[])[] = []
      const auditor = createAuditor({ store, clock: () => now, onError: (_, records) => lost.push(records) })
      await assert.rejects(auditor.record(record()), (error: Error) => {
        assert.ok(error instanceof AuditUnavailable)
        assert.equal(error.statusCode, 503)
        return true
      })
      await assert.rejects(auditor.record(record({ at: 5 })), AuditUnavailable)
      await assert.rejects(auditor.prepare(), AuditUnavailable)
      assert.equal(state.appends, 1)
      assert.deepEqual(lost, [[record()], [record({ at: 5 })]])
      state.unreachable = false
      now = 1001
      await auditor.prepare()
      await auditor.record(record())
      assert.equal(state.appends, 2)
    })

    it('stays unavailable to a ping after a failed write', async () => {
      const { store } = await awayStore()
      const auditor = createAuditor({ store: { ...store, ping: async () => {} }, clock: () => 0 })
      await auditor.prepare()
      await assert.rejects(auditor.record(record()), AuditUnavailable)
      await assert.rejects(auditor.prepare(), AuditUnavailable)
    })

    it('allows requests if configured (AUDIT-7)', async () => {
      const { store } = await awayStore()
      const lost: unknown[] = []
      const auditor = createAuditor({ store, failure: 'allow', onError: error => lost.push(error) })
      await auditor.prepare()
      await auditor.record(record())
      await auditor.complete(await auditor.intend(record()), record())
      assert.equal(lost.length, 3)
    })

    it('sends no change that cannot be announced', async () => {
      const { store } = await awayStore()
      await assert.rejects(createAuditor({ store }).intend(record()), AuditUnavailable)
    })

    it('later completes a change made while the store became unavailable, once', async () => {
      const { state, store } = await awayStore()
      state.unreachable = false
      const auditor = createAuditor({ store })
      const intent = await auditor.intend(record())
      state.unreachable = true
      await auditor.complete(intent, record({ at: 2, status: 201 }), record({ at: 3 }))
      state.unreachable = false
      await auditor.flush()
      await auditor.flush()
      assert.deepEqual(await statuses(store), [201, 200])
      assert.equal(await reportUnknownOutcomes(store, LATER), 0)
    })
  })

  describe('reportUnknownOutcomes', () => {
    it('reports a change that was announced and never completed, and later its completion, once (AUDIT-9)', async () => {
      const store = await open()
      const auditor = createAuditor({ store })
      const completed = await auditor.intend(record())
      await auditor.complete(completed, record({ status: 201 }))
      const lost = await auditor.intend(record({ interaction: 'create' }))
      assert.equal(await reportUnknownOutcomes(store, 1001), 0)
      // A new process: only the database knows the intent.
      assert.equal(await reportUnknownOutcomes(store, LATER), 1)
      assert.equal(await reportUnknownOutcomes(store, LATER), 0)
      assert.deepEqual(await statuses(store), [201, OUTCOME_UNKNOWN])
      const [unknown = assert.fail()] = await findRecords(store, { limit: 1 })
      const event = toAuditEvent(unknown, { fhirBaseUrl: 'http://fhir.test/fhir', ids })
      assert.deepEqual(validate(event), [])
      assert.equal(event.outcome, '8')
      assert.match(String(event.outcomeDesc), /^Outcome unknown/)
      await auditor.redeliver([{ id: lost ?? '', record: record({ status: 204 }) }])
      await auditor.redeliver([{ id: lost ?? '', record: record({ status: 204 }) }])
      assert.deepEqual(await statuses(store), [201, OUTCOME_UNKNOWN, 204])
      await auditor.flush()
    })
  })
})

const LATER = 1000 + 11 * 60_000

async function statuses(store: Store): Promise<readonly number[]> {
  const kept = await findRecords(store, { limit: 10, order: 'oldest' })
  return kept.toSorted((a, b) => a.id - b.id).map(({ status }) => status)
}
