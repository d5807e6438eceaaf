import type { Kysely } from 'kysely'
import type { Schema } from '../../store/index.ts'

/** Sets a value that all instances share, until it is set again. */
export async function setRuntimeValue(
  db: Kysely<Schema>,
  name: string,
  value: string,
  now: number,
): Promise<void> {
  const set = { value, changed_at: now, expires_at: null }
  await db
    .insertInto('runtime_value')
    .values({ name, ...set })
    .onConflict(conflict => conflict.column('name').doUpdateSet(set))
    .execute()
}
