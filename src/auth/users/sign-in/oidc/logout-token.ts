import type { FastifyInstance } from 'fastify'
import type { Kysely } from 'kysely'
import { isRedirecting, type OidcProvider } from '../../../../config/index.ts'
import { isFailure, isRecord } from '../../../../core/index.ts'
import { type Claims, decodeJwt } from '../../../../jwt/index.ts'
import { type Schema, sha256 } from '../../../../store/index.ts'
import { auditEvent, describeRefusal } from '../../../base/audit.ts'
import { CLOCK_TOLERANCE_SECONDS } from '../../../base/limits.ts'
import { paths } from '../../../base/paths.ts'
import { type AuthRefusal, getStatus, refuse } from '../../../base/refusal.ts'
import { readParameters } from '../../../base/request.ts'
import type { UsersContext } from '../../context.ts'
import { endProviderLogins } from '../../login.ts'

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
    const refusal = isFailure(token) ? token : await endSession(token)
    if (!refusal) return reply.send()
    const { error, description } = refusal
    request.log.info({ reason: refusal.reason }, 'Back-channel logout refused')
    const event = { kind: 'logout', anonymous: true, ...describeRefusal(refusal) } as const
    await auditEvent(context, request, { ...event, reason: description })
    return reply.code(getStatus(error)).send({ error, error_description: description })

    function endSession({
      provider,
      jti,
      expiresAt,
      session,
    }: LogoutToken): Promise<AuthRefusal | undefined> {
      return context.store.db.transaction().execute(async trx => {
        if (!(await consumeToken(trx, provider, jti, expiresAt))) return refuse('logout-token-used')
        const logins = await endProviderLogins(trx, session)
        const event = { kind: 'logout', status: 200, reason: `Signed out by ${provider.id}` } as const
        for (const { user, ended } of logins)
          await auditEvent(context, request, { ...event, user, details: { ended } }, trx)
        return undefined
      })
    }
  })
}

/** OIDC Back-Channel Logout, 2.6. */
async function readLogoutToken(context: UsersContext, text: string): Promise<LogoutToken | AuthRefusal> {
  const provider = context.rules.findByIssuer(decodeJwt(text)?.claims.iss)
  if (!isRedirecting(provider)) return refuse('logout-token-issuer-unknown')
  const claims = await context.providers.getClient(provider).verify(text)
  if (isFailure(claims))
    return refuse(
      claims.reason === 'unreachable' ? 'logout-token-keys-unreachable' : 'logout-token-signature-invalid',
    )
  const refusal = checkClaims(provider, claims, context.clock() / 1000)
  if (refusal) return refusal
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

function checkClaims({ clientId }: OidcProvider, claims: Claims, now: number): AuthRefusal | undefined {
  const { aud, iat, jti, sub, sid, events, nonce } = claims
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  if (!audiences.includes(clientId)) return refuse('logout-token-of-another-audience')
  if (typeof iat !== 'number' || iat > now + CLOCK_TOLERANCE_SECONDS) return refuse('logout-token-iat-wrong')
  if (findExpiry(claims) + CLOCK_TOLERANCE_SECONDS <= now) return refuse('logout-token-expired')
  if (typeof jti !== 'string' || jti === '') return refuse('logout-token-without-jti')
  if (!isRecord(events) || !isRecord(events[EVENT])) return refuse('logout-token-without-event')
  if (nonce !== undefined) return refuse('logout-token-with-nonce')
  return typeof sub === 'string' || typeof sid === 'string'
    ? undefined
    : refuse('logout-token-without-subject')
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
