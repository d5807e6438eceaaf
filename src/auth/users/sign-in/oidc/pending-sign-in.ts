import type { FastifyReply, FastifyRequest } from 'fastify'
import { createRandomToken, limitPendingRows, sha256 } from '../../../../store/index.ts'
import { type CookieDefinition, defineCookie } from '../../../../web/http/index.ts'
import { LIFETIME, LIMITS } from '../../../base/limits.ts'
import type { UsersContext } from '../../context.ts'
import { findRoom } from '../../room.ts'

/** A sign-in whose user is at the provider. */
export interface PendingSignIn {
  /** Of the provider. */
  readonly issuer: string
  /** Whether another provider could have sent the response (RFC 9700, 4.4). */
  readonly mustNameIssuer: boolean
  readonly nonce: string
  readonly codeVerifier: string
  readonly redirectUri: string
  /** The authorization request that continues after the sign-in. */
  readonly interaction?: string | undefined
  /** Maximum age of the authentication at the provider, in seconds. */
  readonly maxAge?: number | undefined
  /** The earliest time of authentication, if the user must authenticate again, in milliseconds. */
  readonly notBefore?: number | undefined
}

const toSealedCell = (stateHash: string) =>
  ({ table: 'pending_sign_in', column: 'request_sealed', row: stateHash }) as const

/** One cookie for each sign-in, so that two tabs do not overwrite each other. */
function defineSignInCookie({ settings }: UsersContext, state: string): CookieDefinition {
  const cookie = defineCookie(settings.issuerUrl, `sallyport-sign-in-${sha256(state).slice(0, 8)}`)
  const maxAge = LIFETIME.interaction / 1000
  return { ...cookie, attributes: { ...cookie.attributes, maxAge, priority: 'low' } }
}

/** Stores a sign-in, binds it to the browser by a cookie, and returns its state. Undefined if too many of the user or network are pending. */
export async function storePendingSignIn(
  context: UsersContext,
  request: FastifyRequest,
  reply: FastifyReply,
  pending: PendingSignIn,
): Promise<string | undefined> {
  const { store, sealer, clock } = context
  const networkHash = findRoom(context, request)
  if (!(await admitRow(store.db, { networkHash, now: clock() }))) return undefined
  const state = createRandomToken()
  const browser = createRandomToken()
  await store.db
    .insertInto('pending_sign_in')
    .values({
      state_hash: sha256(state),
      browser_hash: sha256(browser),
      request_sealed: sealer.seal(JSON.stringify(pending), toSealedCell(sha256(state))),
      network_hash: networkHash,
      expires_at: clock() + LIFETIME.interaction,
    })
    .execute()
  clearOldCookies(context, request, reply)
  const { name, attributes } = defineSignInCookie(context, state)
  reply.setCookie(name, browser, attributes)
  return state
}

const admitRow = limitPendingRows('pending_sign_in', {
  perNetwork: LIMITS.pendingPerNetwork,
  inAll: LIMITS.pending,
})

/** Any site can start sign-ins in a browser, which discards other cookies if it has too many. */
function clearOldCookies(context: UsersContext, { cookies }: FastifyRequest, reply: FastifyReply): void {
  const { name, attributes } = defineSignInCookie(context, '')
  const prefix = name.slice(0, -8)
  const held = Object.keys(cookies).filter(one => one.startsWith(prefix))
  for (const old of held.slice(0, Math.max(0, held.length + 1 - LIMITS.signInsPerBrowser)))
    reply.clearCookie(old, attributes)
}

/** Deletes the sign-in of this state and this browser: each works once, and another browser cannot use or end it. */
export async function takePendingSignIn(
  context: UsersContext,
  request: FastifyRequest,
  reply: FastifyReply,
  state: string,
): Promise<PendingSignIn | undefined> {
  const { name, attributes } = defineSignInCookie(context, state)
  const browser = request.cookies[name]
  if (browser === undefined) return undefined
  reply.clearCookie(name, attributes)
  const row = await context.store.db
    .deleteFrom('pending_sign_in')
    .where('state_hash', '=', sha256(state))
    .where('browser_hash', '=', sha256(browser))
    .where('expires_at', '>', context.clock())
    .returning(['state_hash', 'request_sealed'])
    .executeTakeFirst()
  const text = row && context.sealer.tryOpen(row.request_sealed, toSealedCell(row.state_hash))
  return text === undefined ? undefined : JSON.parse(text)
}
