import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CompiledQuery } from 'kysely'
import { eachDatabase } from '../../test/support/databases.ts'
import { limitPendingRows, type Store } from './index.ts'

const now = Date.UTC(2031, 0, 1)
const isFull = limitPendingRows('authorization_request', { perNetwork: 2, inAll: 3 })

async function add({ db }: Store, id: string, network: string | null, expiresAt = now + 1): Promise<void> {
  const row = { id_hash: id, request: '{}', network_hash: network, created_at: 1, expires_at: expiresAt }
  await db.insertInto('authorization_request').values(row).execute()
}

/** The plans of the statements of a check. */
async function explain({ db }: Store, check: typeof isFull): Promise<readonly string[]> {
  const plans: string[] = []
  const explaining = new Proxy(db, {
    get: (_, name) => (name === 'executeQuery' ? explainAndExecute : Reflect.get(db, name).bind(db)),
  })
  async function explainAndExecute(query: CompiledQuery) {
    const explained = { ...query, sql: `explain query plan ${query.sql}` }
    const { rows } = await db.executeQuery<{ detail: string }>(explained)
    plans.push(...rows.map(({ detail }) => detail))
    return db.executeQuery(query)
  }
  await check(explaining, { networkHash: 'n', now })
  return plans
}

eachDatabase((_name, open) => {
  describe('limitPendingRows', () => {
    it('limits the rows of one network and of all, and counts neither expired rows nor those of logged-in users', async () => {
      const store = await open()
      const check = (networkHash: string) => isFull(store.db, { networkHash, now })
      await add(store, 'a', 'n1')
      await add(store, 'expired', 'n1', now)
      for (const id of ['x', 'y', 'z']) await add(store, id, null)
      assert.equal(await check('n1'), false)
      await add(store, 'b', 'n1')
      assert.deepEqual([await check('n1'), await check('n2')], [true, false])
      await add(store, 'c', 'n2')
      assert.equal(await check('n3'), true)
    })

    it('counts in an index on SQLite, without reading rows', async () => {
      const store = await open()
      if (store.dialect !== 'sqlite') return
      for (const table of ['app_launch', 'authorization_request', 'pending_sign_in'] as const)
        for (const plan of await explain(store, limitPendingRows(table, { perNetwork: 1, inAll: 1 })))
          assert.match(plan, /USING COVERING INDEX/)
    })
  })
})
