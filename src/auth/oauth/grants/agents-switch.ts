import type { Kysely } from 'kysely'
import type { Schema } from '../../../store/index.ts'
import { setRuntimeValue } from '../../base/runtime-value.ts'

const NAME = 'agents'

/** Whether an administrator switched all agents off, on every instance (AGENT-8). */
export async function areAgentsOff(db: Kysely<Schema>): Promise<boolean> {
  const row = await db.selectFrom('runtime_value').select('value').where('name', '=', NAME).executeTakeFirst()
  return row?.value === 'off'
}

/** Switches agents off, which revokes the access of all, or on again. Returns how many lost their access. */
export async function switchAgents(db: Kysely<Schema>, value: 'on' | 'off', now: number): Promise<number> {
  await setRuntimeValue(db, NAME, value, now)
  if (value === 'on') return 0
  const { numUpdatedRows } = await db
    .updateTable('grant')
    .set({ revoked_at: now })
    .where('resource', 'is not', null)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return Number(numUpdatedRows)
}
