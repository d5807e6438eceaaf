import type { Kysely } from 'kysely'
import { createRandomToken, type Schema, sha256 } from '../../store/index.ts'
import { type Grant, hasScope } from '../grant/grant.ts'
import { LIFETIME } from '../lifetimes.ts'

/** A refresh token for a grant that may have one: `online_access` while the login lasts, `offline_access` beyond. */
export async function createRefreshToken(
  db: Kysely<Schema>,
  grant: Grant,
  now: number,
): Promise<string | undefined> {
  if (!hasScope(grant.scope, 'online_access') && !hasScope(grant.scope, 'offline_access')) return undefined
  const token = createRandomToken()
  await db
    .insertInto('refresh_token')
    .values({
      token_hash: sha256(token),
      grant_id: grant.id,
      created_at: now,
      expires_at: grant.endsAt ?? now + LIFETIME.offlineRefresh,
      used_at: null,
      request_hash: null,
      successor_hash: null,
      successor_sealed: null,
    })
    .execute()
  return token
}

/** Notes that a grant is in use, which `/manage` shows and the sweeper looks at. */
export async function touchGrant(db: Kysely<Schema>, id: string, now: number): Promise<void> {
  await db.updateTable('grant').set({ last_used_at: now }).where('id', '=', id).execute()
}
