import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CompiledQuery, Kysely } from 'kysely'
import type { Schema } from '../../../store/index.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import { openTestStore } from '../../testing/test-store.ts'
import { createSettling } from './settle.ts'

/** The database, which notes the plan of each statement that reads or changes grants. */
function explainGrants(db: Kysely<Schema>, plans: string[]): Kysely<Schema> {
  return db.withPlugin({
    transformQuery: ({ node, queryId }) => {
      statements.push(db.getExecutor().compileQuery(node, queryId))
      return node
    },
    transformResult: async ({ result }) => {
      for (const query of statements.splice(0).filter(({ sql }) => sql.includes('"grant"'))) {
        const explained = { ...query, sql: `explain query plan ${query.sql}` }
        const { rows } = await db.executeQuery<{ detail: string }>(explained)
        plans.push(rows.map(({ detail }) => detail).join('; '))
      }
      return result
    },
  })
}
const statements: CompiledQuery[] = []

describe('settling', () => {
  const open = openTestStore()

  it('reads the grants of a client, of a user and of all by an index, whatever their number (REVOKE-5)', async () => {
    const auth = await TestAuthServer.open(await open())
    await auth.addClient({ client_id: 'removed' })
    await auth.addUser('ada')
    const { db } = auth.store
    const { id } = await db
      .selectFrom('clinician')
      .select('id')
      .where('username', '=', 'ada')
      .executeTakeFirstOrThrow()
    const now = auth.time.now
    const times = { auth_time: now, created_at: now, last_used_at: now }
    await db
      .insertInto('grant')
      .values({ id: 'g', client_id: 'removed', clinician_id: id, scope: 'openid', ...times })
      .execute()
    await db.updateTable('client').set({ disabled: true }).where('client_id', '=', 'removed').execute()
    await db.updateTable('clinician').set({ disabled: true }).where('id', '=', id).execute()
    const plans: string[] = []
    const store = { ...auth.store, db: explainGrants(db, plans) }
    const { rules, settings } = auth
    await createSettling({ store, rules, settings, clock: () => now }).settle()
    const { revoked_at } = await db
      .selectFrom('grant')
      .select('revoked_at')
      .where('id', '=', 'g')
      .executeTakeFirstOrThrow()
    assert.equal(revoked_at, now)
    assert(plans.length >= 3)
    for (const plan of plans) {
      assert.doesNotMatch(plan, /SCAN grant|TEMP B-TREE/)
      assert.match(
        plan,
        /SEARCH grant USING (?:INDEX grant_(?:client|clinician)_id|INDEX grant_last_used_at|.*\(id=\?\))/,
      )
    }
  })
})
