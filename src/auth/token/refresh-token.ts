import type { Kysely } from 'kysely'
import { createRandomToken, type Schema, sha256 } from '../../store/index.ts'
import { type Grant, hasScope } from '../grant/grant.ts'
import { LIFETIME } from '../lifetimes.ts'

/** Creates a refresh token if the grant has `online_access`, which ends with the login, or `offline_access`. */
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

/** Records the last use of a grant, for `/manage` and for deleting old grants. */
export async function touchGrant(db: Kysely<Schema>, id: string, now: number): Promise<void> {
  await db.updateTable('grant').set({ last_used_at: now }).where('id', '=', id).execute()
}
