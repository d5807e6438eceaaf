import type { Kysely } from 'kysely'
import { createRandomToken, type Schema, type Store, sha256 } from '../../store/index.ts'
import { networkOf } from '../../web/index.ts'
import type { AuthContext } from '../context.ts'
import { LIFETIME } from '../lifetimes.ts'
import { LIMITS } from '../limits.ts'
import type { Parameters } from '../parameters.ts'
import { Refusal } from '../refusal.ts'
import type { AuthorizationRequest, PickedContext } from './request.ts'

/** A verified request that waits for its user. The id is in the address of the pages that it leads through. */
export interface Interaction {
  readonly id: string
  readonly request: AuthorizationRequest
}

/**
 * Stores a request while its user is asked. `address` is that of a browser without a login: what strangers leave behind
 * is limited.
 */
export async function storeInteraction(
  { store, clock }: AuthContext,
  request: AuthorizationRequest,
  address: string | undefined,
): Promise<Interaction | Refusal> {
  const network = address === undefined ? undefined : sha256(networkOf(address))
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

/** The stored request that a page or form names, unless it is over. */
export async function interactionOf(
  { store, clock }: AuthContext,
  parameters: Parameters,
): Promise<Interaction | undefined> {
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

/** Keeps what its user picked, while it waits. */
export async function keepPicked(
  { db }: Store,
  interaction: Interaction,
  picked: PickedContext,
): Promise<Interaction> {
  const request = { ...interaction.request, picked }
  await db
    .updateTable('authorization_request')
    .set({ request: JSON.stringify(request) })
    .where('id_hash', '=', sha256(interaction.id))
    .execute()
  return { id: interaction.id, request }
}

/** Takes it away by compare-and-set: it ends in one code or one refusal, however often its page is sent. */
export async function consumeInteraction(db: Kysely<Schema>, id: string): Promise<boolean> {
  const result = await db
    .deleteFrom('authorization_request')
    .where('id_hash', '=', sha256(id))
    .executeTakeFirst()
  return result.numDeletedRows === 1n
}
