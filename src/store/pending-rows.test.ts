import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type CompiledQuery, sql } from 'kysely'
import { eachDatabase } from '../../test/support/databases.ts'
import { limitPendingRows, type Store } from './index.ts'

const now = Date.UTC(2031, 0, 1)
const admit = limitPendingRows('authorization_request', { perNetwork: 2, inAll: 3 })

async function add({ db }: Store, id: string, network: string | null, expiresAt = now + 1): Promise<void> {
  const row = { id_hash: id, request: '{}', network_hash: network, created_at: 1, expires_at: expiresAt }
  await db.insertInto('authorization_request').values(row).execute()
}

/** The plans of the statements of a check. */
async function explain({ db }: Store, check: typeof admit): Promise<readonly string[]> {
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
    it('limits the rows of one network, and counts neither expired rows nor those of logged-in users', async () => {
      const store = await open()
      const check = (networkHash: string) => admit(store.db, { networkHash, now })
      await add(store, 'a', 'n1')
      await add(store, 'expired', 'n1', now)
      for (const id of ['x', 'y', 'z']) await add(store, id, null)
      assert.equal(await check('n1'), true)
      await add(store, 'b', 'n1')
      assert.deepEqual([await check('n1'), await check('n2')], [false, true])
    })

    it('never refuses a network because of others: the oldest rows of the network with the most make room', async () => {
      const store = await open()
      const admitOne = limitPendingRows('authorization_request', { perNetwork: 400, inAll: 1_000 })
      for (const [network, count] of Object.entries({ small: 50, flood: 350, other: 300, third: 300 }))
        for (let at = 0; at < count; at++) await add(store, `${network} ${at}`, network, now + 1 + at)
      await add(store, 'of a user', null)
      assert.equal(await admitOne(store.db, { networkHash: 'new', now }), true)
      const { rows } = await sql<{ network_hash: string | null; count: number; first: number }>`
        select network_hash, count(*) as count, min(expires_at) as first from authorization_request group by network_hash`.execute(
        store.db,
      )
      const byNetwork = new Map(
        rows.map(row => [row.network_hash, [Number(row.count), Number(row.first) - now]]),
      )
      assert.deepEqual(byNetwork.get('flood'), [250, 101])
      assert.deepEqual(byNetwork.get('small'), [50, 1])
      assert.deepEqual(byNetwork.get('other'), [300, 1])
      assert.deepEqual(byNetwork.get(null), [1, 1])
    })

    it('deletes the oldest rows if no network has a tenth of them', async () => {
      const store = await open()
      const admitOne = limitPendingRows('authorization_request', { perNetwork: 100, inAll: 300 })
      for (let at = 0; at < 300; at++) await add(store, `row ${at}`, `network ${at}`, now + 1 + at)
      assert.equal(await admitOne(store.db, { networkHash: 'new', now }), true)
      const rows = await store.db.selectFrom('authorization_request').select('expires_at').execute()
      assert.deepEqual([rows.length, Math.min(...rows.map(row => Number(row.expires_at))) - now], [200, 101])
    })

    it('counts in an index on SQLite, without reading rows', async () => {
      const store = await open()
      if (store.dialect !== 'sqlite') return
      for (const table of [
        'app_launch',
        'authorization_request',
        'pending_login',
        'pending_sign_in',
      ] as const)
        for (const plan of await explain(store, limitPendingRows(table, { perNetwork: 1, inAll: 1 })))
          assert.match(plan, /USING COVERING INDEX/)
    })
  })
})
