import type { Kysely } from 'kysely'
import { type Schema, type Store, sha256 } from '../../store/index.ts'

/** The `jti` of a back end's tokens begins with this: all of them end with their client, and with no later one of its id. */
export function clientTokens({ id, createdAt }: { readonly id: string; readonly createdAt: number }): string {
  return `client-${sha256(`${id} ${createdAt}`)}`
}

/**
 * Revokes one access token by its `jti`, or all whose `jti` begins with an id, for as long as any of them could live.
 * Tells whether that was not revoked before.
 */
export async function revoke(
  db: Kysely<Schema>,
  id: string,
  now: number,
  expiresAt: number,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('revocation')
    .values({ id, revoked_at: now, expires_at: expiresAt })
    .onConflict(conflict => conflict.doNothing())
    .executeTakeFirst()
  return numInsertedOrUpdatedRows === 1n
}

/** Whether an access token was revoked by itself or by what its `jti` begins with. Grants say so themselves. */
export async function isRevoked({ db }: Pick<Store, 'db'>, jti: string): Promise<boolean> {
  const row = await db
    .selectFrom('revocation')
    .select('id')
    .where('id', 'in', [jti, jti.split('.')[0] ?? ''])
    .executeTakeFirst()
  return row !== undefined
}
