import type { Kysely, Selectable } from 'kysely'
import { type Schema, type Store, sha256 } from '../../store/index.ts'

/**
 * The prefix of the `jti` of a backend service's tokens. It differs for a later client with the same id, and after the
 * client was disabled and enabled again.
 */
export function makeClientTokenPrefix({
  id,
  createdAt,
  enabledAt,
}: {
  readonly id: string
  readonly createdAt: number
  readonly enabledAt?: number | undefined
}): string {
  return `${CLIENT_PREFIX}${sha256([id, createdAt, ...(enabledAt === undefined ? [] : [enabledAt])].join(' '))}`
}

const CLIENT_PREFIX = 'client-'

// Longer than the token of a backend service is valid.
const BACKEND_TOKEN_MS = 600_000

/** Revokes the tokens of a backend service, and ends its bulk exports, whose files are sent for longer than a token is valid. */
export async function revokeClientTokens(
  db: Kysely<Schema>,
  client: Pick<Selectable<Schema['client']>, 'client_id' | 'created_at' | 'enabled_at'>,
  now: number,
): Promise<void> {
  const { client_id: id, created_at: createdAt, enabled_at } = client
  const prefix = makeClientTokenPrefix({ id, createdAt, enabledAt: enabled_at ?? undefined })
  await revokeTokens(db, prefix, now, now + BACKEND_TOKEN_MS)
  await db.deleteFrom('export_job').where('client_id', '=', id).where('issuer', '=', '').execute()
}

/** False for the id of a grant, which is a UUID. */
export function isClientTokenPrefix(prefix: string): boolean {
  return prefix.startsWith(CLIENT_PREFIX)
}

/**
 * Revokes one access token by its `jti`, or all with a `jti` prefix, until they have expired. False if they were revoked
 * before.
 */
export async function revokeTokens(
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

/** Whether an access token was revoked by its `jti` or its prefix. Revoked grants are not looked up here. */
export async function isRevoked({ db }: Pick<Store, 'db'>, jti: string): Promise<boolean> {
  const row = await db
    .selectFrom('revocation')
    .select('id')
    .where('id', 'in', [jti, jti.split('.')[0] ?? ''])
    .executeTakeFirst()
  return row !== undefined
}
