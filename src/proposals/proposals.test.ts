import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabase } from '../../test/support/databases.ts'
import { isFailure } from '../core/index.ts'
import { createSealer, type Store } from '../store/index.ts'
import type { ProposedChange } from './proposal.ts'
import { createProposals } from './proposals.ts'

const CHANGE: ProposedChange = {
  action: 'patch',
  type: 'Condition',
  id: 'c1',
  version: 'W/"1"',
  content: '[{"op":"remove","path":"/note"}]',
  reason: 'The note is about Ann',
}
const PROPOSER = { userId: 'u1', clientId: 'assistant', grantId: 'g1', patient: 'ann' }
const TIMES = { now: 5, expiresAt: 100 }

eachDatabase((_name, openStore) => {
  describe('proposals', () => {
    const proposals = createProposals(createSealer('secret'))
    let store: Store
    before(async () => {
      store = await openStore()
      for (const id of ['u1', 'u2'])
        await store.db
          .insertInto('clinician')
          .values({ id, username: id, password_hash: '', display_name: id, fhir_user_id: id })
          .execute()
    })

    async function add(): Promise<string> {
      const id = await proposals.add(store.db, CHANGE, PROPOSER, TIMES)
      assert(!isFailure(id))
      return id
    }

    it('are found by their person until they expire (PROPOSAL-6)', async () => {
      const id = await add()
      const found = await proposals.find(store.db, id, 'u1', 99)
      assert.deepEqual([found?.change, found?.state, found?.patient], [CHANGE, 'open', 'ann'])
      assert.equal(await proposals.find(store.db, id, 'u2', 99), undefined)
      assert.equal((await proposals.find(store.db, id, 'u1', 100))?.state, 'expired')
      assert.deepEqual(
        [await proposals.countOpen(store.db, 'u1', 99), await proposals.countOpen(store.db, 'u1', 100)],
        [1, 0],
      )
    })

    it('are listed with all that are open among 10,000 others, in little time (PROPOSAL-4)', async () => {
      await store.db.deleteFrom('proposal').execute()
      const ids = [await add()]
      const row = await store.db.selectFrom('proposal').selectAll().executeTakeFirstOrThrow()
      const sealer = createSealer('secret')
      const makeRow = (at: number) => {
        const id = `rejected-${at}`
        const change_sealed = sealer.seal(JSON.stringify(CHANGE), {
          table: 'proposal',
          column: 'change_sealed',
          row: id,
        })
        return { ...row, id, created_at: 10 + at, state: 'rejected' as const, change_sealed }
      }
      for (let at = 0; at < 10_000; at += 500) {
        const rows = Array.from({ length: 500 }, (_, more) => makeRow(at + more))
        await store.db.insertInto('proposal').values(rows).execute()
      }
      ids.push(await add())
      const before = process.threadCpuUsage()
      const listed = await proposals.listOfUser(store.db, 'u1', 50, 100)
      const { user, system } = process.threadCpuUsage(before)
      assert.ok(user + system < 100_000, `${user + system} µs`)
      assert.deepEqual(
        listed
          .slice(0, 2)
          .map(({ id }) => id)
          .toSorted(),
        ids.toSorted(),
      )
      assert.deepEqual([listed.length, listed[2]?.id], [102, 'rejected-9999'])
      assert.equal(await proposals.countOpen(store.db, 'u1', 50), 2)
      await store.db.deleteFrom('proposal').execute()
    })

    it('change their state once, by whoever is first (PROPOSAL-7)', async () => {
      const id = await add()
      const sign = { from: 'open', to: 'signing', now: 6 } as const
      const signed = await Promise.all([
        proposals.change(store.db, id, sign),
        proposals.change(store.db, id, sign),
      ])
      assert.deepEqual(signed.toSorted(), [false, true])
      const outcome = { reference: 'Condition/c1', version: 'W/"2"' }
      assert(await proposals.change(store.db, id, { from: 'signing', to: 'signed', now: 7, outcome }))
      const found = await proposals.find(store.db, id, 'u1', 8)
      assert.deepEqual([found?.state, found?.outcome, found?.decidedAt], ['signed', outcome, 7])
    })

    it('cannot be signed once they have expired (PROPOSAL-6)', async () => {
      const id = await add()
      assert.equal(await proposals.change(store.db, id, { from: 'open', to: 'signing', now: 100 }), false)
    })

    it('are stored without their content in plain text, and end with the account (STORE-2)', async () => {
      await add()
      const rows = await store.db.selectFrom('proposal').selectAll().execute()
      assert(rows.length > 0 && !JSON.stringify(rows).includes('Ann'))
      await store.db.deleteFrom('clinician').where('id', '=', 'u1').execute()
      assert.deepEqual(await store.db.selectFrom('proposal').selectAll().execute(), [])
    })
  })
})
