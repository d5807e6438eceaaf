import type { FastifyRequest } from 'fastify'
import type { Kysely, Transaction } from 'kysely'
import type { Schema, Store } from '../../store/index.ts'
import { auditEvent } from '../audit.ts'
import { findLaunchUrlFault, storeOrigins } from '../client/urls.ts'
import type { AuthContext } from '../context.ts'
import { LIMITS } from '../limits.ts'
import { revoke } from '../revoke.ts'

const DAY_MS = 86_400_000

const SCOPE =
  'openid fhirUser profile launch launch/patient launch/encounter online_access offline_access patient/*.cruds user/*.cruds'

/**
 * Registers a public client for the origin of a launch URL, for a day, or renews it. A registered app keeps its
 * registration. Returns the fault, if there is one.
 */
export async function registerLabClient(
  context: AuthContext,
  request: FastifyRequest,
  { clientId, launchUrl }: { readonly clientId: string; readonly launchUrl: string },
): Promise<string | undefined> {
  const fault = findLaunchUrlFault(launchUrl)
  if (fault !== undefined) return `launch_url: ${fault}`
  if (!/^[\x21-\x7e]{1,100}$/.test(clientId)) return 'client: expected at most 100 characters without spaces'
  return context.store.db.transaction().execute(async trx => {
    const known = await trx
      .selectFrom('client')
      .select(['expires_at', 'disabled'])
      .where('client_id', '=', clientId)
      .executeTakeFirst()
    if (known?.disabled) return 'client: an administrator disabled it'
    if (known && known.expires_at === null) return undefined
    if (!known && (await isFull(trx))) return `The lab has ${LIMITS.labClients} clients. Name one of them`
    await storeClient(trx, { clientId, launchUrl, now: context.clock() })
    const reason = 'The lab registered the client for a day'
    await auditEvent(context, request, { kind: 'register', status: 201, client: clientId, reason }, trx)
    return undefined
  })
}

async function isFull(trx: Transaction<Schema>): Promise<boolean> {
  const { count } = await trx
    .selectFrom('client')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('expires_at', 'is not', null)
    .executeTakeFirstOrThrow()
  return Number(count) >= LIMITS.labClients
}

async function storeClient(
  trx: Transaction<Schema>,
  { clientId, launchUrl, now }: { clientId: string; launchUrl: string; now: number },
): Promise<void> {
  const renewed = {
    redirect_uris: JSON.stringify([new URL(launchUrl).origin]),
    launch_url: launchUrl,
    expires_at: now + DAY_MS,
  }
  const registered = {
    ...{
      client_id: clientId,
      name: clientId,
      description: null,
      logo_url: null,
      auth_method: 'none' as const,
    },
    ...{ secret_hash: null, jwks: null, jwks_url: null, scope: SCOPE, first_party: false, created_at: now },
  }
  await trx
    .insertInto('client')
    .values({ ...registered, ...renewed })
    .onConflict(conflict => conflict.column('client_id').doUpdateSet(renewed))
    .execute()
  await storeOrigins(trx, clientId)
}

/** Ends everything that lab launches created: links, access of apps and registered clients (LAB-2). */
export async function endLab({ db }: Store, now: number): Promise<void> {
  await db.transaction().execute(async trx => {
    await trx.deleteFrom('launch_token').where('lab', 'is not', null).execute()
    await revokeLabGrants(trx, now)
    await trx.deleteFrom('grant').where('lab', 'is not', null).execute()
    await trx.deleteFrom('client').where('expires_at', 'is not', null).execute()
  })
}

async function revokeLabGrants(trx: Kysely<Schema>, now: number): Promise<void> {
  const clients = trx.selectFrom('client').select('client_id').where('expires_at', 'is not', null)
  const grants = await trx
    .selectFrom('grant')
    .select('id')
    .where('lab', 'is not', null)
    .union(trx.selectFrom('grant').select('id').where('client_id', 'in', clients))
    .execute()
  const expiresAt = now + LIMITS.labTokenSeconds * 1000
  for (const { id } of grants) await revoke(trx, id, now, expiresAt)
}
