import type { Transaction } from 'kysely'
import type { Schema } from '../../store/index.ts'
import { getSubject } from '../arguments.ts'
import { type Command, CommandFailure } from '../command.ts'
import { administer } from '../with-store.ts'

/** `sallyport client remove`. Its grants, codes and refresh tokens go with it. */
export const clientRemove: Command = {
  name: 'client remove',
  summary: 'Remove an app and revoke its access',
  usage: `
Usage: npm run -s sallyport -- client remove --id <id>

FHIR servers refuse the app's access tokens within 5 seconds.`,
  options: { id: { type: 'string' } },
  positionals: { min: 0, max: 1 },
  async run(args, io) {
    const id = getSubject(args, 'id')
    await administer(io, `client remove ${id}`, trx => removeClient(trx, id))
    io.stdout.write(`Removed client ${id}\n`)
    return 0
  },
}

// The longest life that an access token can be set to.
const LONGEST_TOKEN_MS = 86_400_000

/** Removes it with its grants; that its tokens are over stays known for as long as one of them could live. */
async function removeClient(trx: Transaction<Schema>, id: string): Promise<void> {
  const { makeClientTokenPrefix } = await import('../../auth/index.ts')
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
