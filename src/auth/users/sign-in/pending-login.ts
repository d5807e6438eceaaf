import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Kysely } from 'kysely'
import { createRandomToken, limitPendingRows, type Schema, sha256 } from '../../../store/index.ts'
import { type CookieDefinition, defineCookie } from '../../../web/http/index.ts'
import { LIFETIME, LIMITS } from '../../base/limits.ts'
import type { UsersContext } from '../context.ts'
import type { ProviderLogin } from '../providers/provider-login.ts'
import { findRoom } from '../room.ts'

/** A sign-in that needs another step. Its user is not logged in. */
export interface PendingLogin {
  readonly userId: string
  /** The mark of the account when the last step succeeded. */
  readonly mark: string
  /** How the user has authenticated so far (RFC 8176). */
  readonly methods: readonly string[]
  /** The directory that checked the password. */
  readonly provider?: ProviderLogin | undefined
}

/** A sign-in with a passkey, which will say whose it is. */
interface UnknownLogin {
  readonly userId: undefined
}

interface Found<Login> {
  readonly idHash: string
  readonly login: Login
  /** For a passkey. It is used up with the pending sign-in. */
  readonly challenge: string
}

export type FoundLogin = Found<PendingLogin>

const toSealedCell = (idHash: string) =>
  ({ table: 'pending_login', column: 'state_sealed', row: idHash }) as const

function definePendingCookie({ settings }: Pick<UsersContext, 'settings'>): CookieDefinition {
  const cookie = defineCookie(settings.issuerUrl, 'sallyport-pending-login')
  return { ...cookie, attributes: { ...cookie.attributes, maxAge: LIFETIME.interaction / 1000 } }
}

const admitRow = limitPendingRows('pending_login', {
  perNetwork: LIMITS.pendingPerNetwork,
  inAll: LIMITS.pending,
})

/**
 * Stores a sign-in that needs another step, and returns the value of its cookie. Its row has no network, and so is neither
 * limited nor deleted: others, who know no password, cannot keep users from their second factor.
 */
export async function storePendingLogin(
  context: Pick<UsersContext, 'sealer' | 'clock'>,
  trx: Kysely<Schema>,
  login: PendingLogin,
): Promise<string> {
  return (await storeLogin(context, trx, '', login)).id
}

/** Stores a sign-in that waits for any passkey. Undefined if too many of the user or network are pending. */
export async function startPasskeyLogin(
  context: Pick<UsersContext, 'settings' | 'store' | 'sealer' | 'clock'>,
  request: FastifyRequest,
): Promise<{ readonly id: string; readonly challenge: string } | undefined> {
  const { store, clock } = context
  const networkHash = findRoom(context, request)
  return (await admitRow(store.db, { networkHash, now: clock() }))
    ? storeLogin(context, store.db, networkHash, { userId: undefined })
    : undefined
}

async function storeLogin(
  { sealer, clock }: Pick<UsersContext, 'sealer' | 'clock'>,
  trx: Kysely<Schema>,
  networkHash: string,
  login: PendingLogin | UnknownLogin,
): Promise<{ readonly id: string; readonly challenge: string }> {
  const id = createRandomToken()
  const challenge = createRandomToken()
  const state = JSON.stringify({ login, challenge })
  await trx
    .insertInto('pending_login')
    .values({
      id_hash: sha256(id),
      state_sealed: sealer.seal(state, toSealedCell(sha256(id))),
      network_hash: networkHash,
      expires_at: clock() + LIFETIME.interaction,
    })
    .execute()
  return { id, challenge }
}

export function setPendingCookie(context: UsersContext, reply: FastifyReply, id: string): void {
  const { name, attributes } = definePendingCookie(context)
  reply.setCookie(name, id, attributes)
}

export function clearPendingCookie(context: UsersContext, reply: FastifyReply): void {
  const { name, attributes } = definePendingCookie(context)
  if (reply.request.cookies[name] !== undefined) reply.clearCookie(name, attributes)
}

/** Finds the sign-in of this browser that needs another step. */
export async function findPendingLogin(
  context: UsersContext,
  request: FastifyRequest,
): Promise<FoundLogin | undefined> {
  const id = request.cookies[definePendingCookie(context).name]
  const found = id === undefined ? undefined : await findById(context, id)
  return found && isKnown(found) ? found : undefined
}

/** Finds the sign-in of this browser that waits for any passkey. */
export async function findPasskeyLogin(
  context: UsersContext,
  request: FastifyRequest,
): Promise<Found<UnknownLogin> | undefined> {
  const id = request.cookies[definePendingCookie(context).name]
  const found = id === undefined ? undefined : await findById(context, id)
  return found && !isKnown(found) ? found : undefined
}

function isKnown(found: Found<PendingLogin> | Found<UnknownLogin>): found is FoundLogin {
  return found.login.userId !== undefined
}

async function findById(
  context: UsersContext,
  id: string,
): Promise<Found<PendingLogin> | Found<UnknownLogin> | undefined> {
  const row = await context.store.db
    .selectFrom('pending_login')
    .selectAll()
    .where('id_hash', '=', sha256(id))
    .where('expires_at', '>', context.clock())
    .executeTakeFirst()
  const text = row && context.sealer.tryOpen(row.state_sealed, toSealedCell(row.id_hash))
  return text === undefined ? undefined : { idHash: sha256(id), ...JSON.parse(text) }
}

/** Ends a pending sign-in by compare-and-set: each step works once. */
export async function consumePendingLogin(
  trx: Kysely<Schema>,
  { idHash }: Pick<FoundLogin, 'idHash'>,
): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('pending_login')
    .where('id_hash', '=', idHash)
    .executeTakeFirst()
  return numDeletedRows === 1n
}
