import type { Transaction } from 'kysely'
import type { Schema } from '../store/index.ts'
import { CommandFailure } from './command.ts'

// The longest configurable lifetime of an access token.
const LONGEST_TOKEN_MS = 86_400_000

/** Deletes the client with its grants. The revocation is kept as long as one of its tokens could still be valid. */
export async function removeClient(trx: Transaction<Schema>, id: string): Promise<void> {
  const { makeClientTokenPrefix } = await import('../auth/index.ts')
  const grants = await trx.selectFrom('grant').select('id').where('client_id', '=', id).execute()
  const client = await trx
    .deleteFrom('client')
    .where('client_id', '=', id)
    .returning('created_at')
    .executeTakeFirst()
  if (!client) throw new CommandFailure(`Cannot remove client: there is no client ${id}`)
  const now = Date.now()
  const tokens = makeClientTokenPrefix({ id, createdAt: client.created_at })
  const ended = [...grants.map(grant => grant.id), tokens].map(ending => ({
    id: ending,
    revoked_at: now,
    expires_at: now + LONGEST_TOKEN_MS,
  }))
  await trx
    .insertInto('revocation')
    .values(ended)
    .onConflict(conflict => conflict.doNothing())
    .execute()
}
