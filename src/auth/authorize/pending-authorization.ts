import type { Kysely } from 'kysely'
import { createRandomToken, type Schema, type Store, sha256 } from '../../store/index.ts'
import { findNetwork } from '../../web/index.ts'
import type { AuthContext } from '../context.ts'
import { LIFETIME } from '../lifetimes.ts'
import { LIMITS } from '../limits.ts'
import type { Parameters } from '../parameters.ts'
import { Refusal } from '../refusal.ts'
import type { AuthorizationRequest, PickedContext } from './request.ts'

/** A verified request that waits for its user. Its id is in the URL of the pages that the user sees. */
export interface PendingAuthorization {
  readonly id: string
  readonly request: AuthorizationRequest
}

/**
 * Stores a request while it waits for its user. Pass `ip` for a browser without a login: the number of such requests is
 * limited.
 */
export async function storePendingAuthorization(
  { store, clock }: AuthContext,
  request: AuthorizationRequest,
  ip: string | undefined,
): Promise<PendingAuthorization | Refusal> {
  const network = ip === undefined ? undefined : sha256(findNetwork(ip))
  if (network !== undefined && (await isFull(store, network, clock())))
    return new Refusal(
      'temporarily_unavailable',
      `More than ${LIMITS.pendingPerNetwork} requests from one network, or ${LIMITS.pending} in all, are waiting for a login.`,
    )
  const id = createRandomToken()
  await store.db
    .insertInto('authorization_request')
    .values({
      id_hash: sha256(id),
      request: JSON.stringify(request),
      network_hash: network ?? null,
      created_at: request.arrivedAt,
      expires_at: request.arrivedAt + LIFETIME.interaction,
    })
    .execute()
  return { id, request }
}

async function isFull({ db }: Store, network: string, now: number): Promise<boolean> {
  const waiting = db
    .selectFrom('authorization_request')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('network_hash', 'is not', null)
    .where('expires_at', '>', now)
  const own = await waiting.where('network_hash', '=', network).executeTakeFirstOrThrow()
  if (Number(own.count) >= LIMITS.pendingPerNetwork) return true
  const all = await waiting.executeTakeFirstOrThrow()
  return Number(all.count) >= LIMITS.pending
}

/** Finds the stored request that a page or form names, unless it has ended or expired. */
export async function findPendingAuthorization(
  { store, clock }: AuthContext,
  parameters: Parameters,
): Promise<PendingAuthorization | undefined> {
  const id = parameters.get('interaction')
  if (id === undefined) return undefined
  const row = await store.db
    .selectFrom('authorization_request')
    .select('request')
    .where('id_hash', '=', sha256(id))
    .where('expires_at', '>', clock())
    .executeTakeFirst()
  return row && { id, request: JSON.parse(row.request) }
}

export async function storePickedContext(
  db: Kysely<Schema>,
  pending: PendingAuthorization,
  picked: PickedContext,
): Promise<PendingAuthorization> {
  const request = { ...pending.request, picked }
  await db
    .updateTable('authorization_request')
    .set({ request: JSON.stringify(request) })
    .where('id_hash', '=', sha256(pending.id))
    .execute()
  return { id: pending.id, request }
}

/** Deletes it by compare-and-set: it ends in one code or one refusal, however often its form is submitted. */
export async function consumePendingAuthorization(db: Kysely<Schema>, id: string): Promise<boolean> {
  const result = await db
    .deleteFrom('authorization_request')
    .where('id_hash', '=', sha256(id))
    .executeTakeFirst()
  return result.numDeletedRows === 1n
}
