import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Kysely } from 'kysely'
import type { OidcProvider } from '../../../config/index.ts'
import { isFailure, isRecord } from '../../../core/index.ts'
import { type Claims, decodeJwt } from '../../../jwt/index.ts'
import { type Schema, sha256 } from '../../../store/index.ts'
import { auditEvent } from '../../base/audit.ts'
import { type Fault, makeFault } from '../../base/fault.ts'
import { CLOCK_TOLERANCE_SECONDS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { readParameters } from '../../base/request.ts'
import type { UsersContext } from '../context.ts'
import { endProviderLogins } from '../login.ts'

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'

/** How old a token without `exp` may be. */
const LIFETIME_SECONDS = 120

/** A verified logout token. */
interface LogoutToken {
  readonly provider: OidcProvider
  readonly jti: string
  /** In seconds. */
  readonly expiresAt: number
  readonly session: { readonly issuer: string; readonly subject?: string; readonly sid?: string }
}

/** `POST /login/backchannel-logout` (OIDC Back-Channel Logout): the provider ends a session of its user. */
export function addBackchannelLogoutRoute(app: FastifyInstance, context: UsersContext): void {
  app.post(paths.backchannelLogout, async (request, reply) => {
    const token = await readLogoutToken(context, readParameters(request.body).get('logout_token') ?? '')
    if (!isFailure(token) && (await endSession(token))) return reply.send()
    const reason = isFailure(token) ? token.text : 'The logout_token was used before'
    const status = reason === UNREACHABLE ? 503 : 400
    request.log.info({ reason }, 'Back-channel logout refused')
    const event = { kind: 'logout', allowed: false, anonymous: true, status, reason } as const
    await auditEvent(context, request, event)
    return sendError(reply, status, reason)

    function endSession({ provider, jti, expiresAt, session }: LogoutToken): Promise<boolean> {
      return context.store.db.transaction().execute(async trx => {
        if (!(await consumeToken(trx, provider, jti, expiresAt))) return false
        const logins = await endProviderLogins(trx, session)
        const event = { kind: 'logout', status: 200, reason: `Signed out by ${provider.id}` } as const
        for (const { user, ended } of logins)
          await auditEvent(context, request, { ...event, user, details: { ended } }, trx)
        return true
      })
    }
  })
}

const UNREACHABLE = 'The keys of the provider could not be fetched'

/** OIDC Back-Channel Logout, 2.6. */
async function readLogoutToken(context: UsersContext, text: string): Promise<LogoutToken | Fault> {
  const provider = context.rules.findByIssuer(decodeJwt(text)?.claims.iss)
  if (provider?.kind !== 'oidc') return makeFault('The logout_token has no known issuer')
  const claims = await context.providers.getClient(provider).verify(text)
  if (isFailure(claims))
    return makeFault(
      claims.kind === 'unreachable' ? UNREACHABLE : 'The signature of the logout_token is invalid',
    )
  const fault = findFault(provider, claims, context.clock() / 1000)
  if (fault !== undefined) return makeFault(`The logout_token has ${fault}`)
  const { sub, sid, jti } = claims
  return {
    provider,
    jti: String(jti),
    expiresAt: findExpiry(claims) + CLOCK_TOLERANCE_SECONDS,
    session: {
      issuer: provider.issuer,
      ...(typeof sub === 'string' ? { subject: sub } : {}),
      ...(typeof sid === 'string' ? { sid } : {}),
    },
  }
}

function findFault({ clientId }: OidcProvider, claims: Claims, now: number): string | undefined {
  const { aud, iat, jti, sub, sid, events, nonce } = claims
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  if (!audiences.includes(clientId)) return 'another audience'
  if (typeof iat !== 'number' || iat > now + CLOCK_TOLERANCE_SECONDS) return 'no iat, or one in the future'
  if (findExpiry(claims) + CLOCK_TOLERANCE_SECONDS <= now) return 'expired'
  if (typeof jti !== 'string' || jti === '') return 'no jti'
  if (!isRecord(events) || !isRecord(events[EVENT])) return 'no logout event'
  if (nonce !== undefined) return 'a nonce, like an id_token'
  return typeof sub === 'string' || typeof sid === 'string' ? undefined : 'neither sub nor sid'
}

function findExpiry({ exp, iat }: Claims): number {
  return typeof exp === 'number' ? exp : Number(iat) + LIFETIME_SECONDS
}

/** A token works once. Those of providers are kept beside the assertions of clients. */
async function consumeToken(
  trx: Kysely<Schema>,
  provider: OidcProvider,
  jti: string,
  expiresAt: number,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto('used_assertion')
    .values({ client_id: provider.issuer, jti_hash: sha256(jti), expires_at: expiresAt * 1000 })
    .onConflict(conflict => conflict.doNothing())
    .executeTakeFirst()
  return numInsertedOrUpdatedRows === 1n
}

function sendError(reply: FastifyReply, status: 400 | 503, description: string): FastifyReply {
  const error = status === 503 ? 'temporarily_unavailable' : 'invalid_request'
  return reply.code(status).send({ error, error_description: description })
}
