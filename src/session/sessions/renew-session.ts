import { setTimeout as pause } from 'node:timers/promises'
import { failApp } from '../../app-reasons/index.ts'
import { isFailure, isRecord } from '../../core/index.ts'
import { toPlain } from '../../fhir/index.ts'
import { fetchJson, type JsonResponse, type Result } from '../failure.ts'
import { computeRenewalClaimMs } from '../limits.ts'
import type { AppContext } from '../oauth/context.ts'
import { computeLifetime, type ReceivedGrant } from '../oauth/token-grant.ts'
import { redeemRefreshToken, revokeSession, revokeTokens } from '../oauth/token-requests.ts'
import { openTokens, type Session, sealTokens } from '../session.ts'
import { findLoginIdleSeconds, measureIdleSeconds, useSession } from './idle.ts'
import { auditSession, endSession, loadSession } from './session-store.ts'

/** Renews the tokens if they are due. */
export async function refreshSession(context: AppContext, session: Session): Promise<Result<Session>> {
  return context.clock() < session.renewAt ? session : renewSession(context, session)
}

/**
 * For responses that need no token. Tokens that are due are still renewed: a session must not appear active if its
 * renewal is refused. An unreachable auth server ends no session.
 */
export async function checkSession(context: AppContext, session: Session): Promise<Result<Session>> {
  const fresh = await refreshSession(context, session)
  return !isFailure(fresh) || fresh.reason === 'session-ended' ? fresh : session
}

/**
 * For an open page: also asks the auth server whether it still accepts the access token. The UserInfo endpoint answers that
 * without a read of the record, at once after a sign-out, and FHIR servers some seconds later. It also learns when the session
 * was last used, and says when the sign-in was: what the user does on either counts for both (LOGIN-20).
 */
export async function checkAccess(
  context: AppContext,
  session: Session,
  isRenewed = false,
): Promise<Result<Session>> {
  const answer = await askUserinfo(context, session)
  const error = answer?.status === 401 && isRecord(answer.json) ? answer.json.error : undefined
  // Before a renewal, which would be refused: that the user signed out is no refusal.
  if (error === 'invalid_grant') return endOver(context, session)
  if (answer?.status !== 401) {
    const fresh = await checkSession(context, session)
    const isLiving = !isFailure(fresh) && answer?.status === 200
    return isLiving ? takeLoginUse(context, fresh, answer.json) : fresh
  }
  if (error === 'login_required') {
    await endRefused(context, session, 'The user was inactive for too long')
    await revokeSession(context, session)
    return failApp('session-ended')
  }
  if (isRenewed) return session
  const renewed = await renewSession(context, session)
  // The token had expired: only now the auth server learns of the use, and says whether the sign-in has ended.
  if (!isFailure(renewed)) return checkAccess(context, renewed, true)
  if (renewed.reason === 'session-ended') return renewed
  if (renewed.reason !== 'token-refused') return session
  await endRefused(context, session, 'The auth server no longer accepts its token')
  return failApp('session-ended')
}

async function askUserinfo(context: AppContext, session: Session): Promise<JsonResponse | undefined> {
  const { discovery, sealer, fetch, authTimeoutMs, settings } = context
  const url = await discovery.findUserinfo(session)
  const tokens = openTokens(sealer, session)
  if (url === undefined || !tokens) return undefined
  const headers = {
    accept: 'application/json',
    authorization: `Bearer ${tokens.accessToken}`,
    ...(findLoginIdleSeconds(settings, session) !== undefined && {
      'sallyport-idle-seconds': String(measureIdleSeconds(context, session)),
    }),
  }
  const answer = await fetchJson(fetch, url, { timeoutMs: authTimeoutMs, headers })
  return isFailure(answer) ? undefined : { status: answer.status, json: toPlain(answer.json) }
}

/** Restarts the idle time of the session when the sign-in was last used. */
async function takeLoginUse(context: AppContext, session: Session, claims: unknown): Promise<Session> {
  const idle = isRecord(claims) ? Number(claims.idle_seconds) : Number.NaN
  return findLoginIdleSeconds(context.settings, session) !== undefined && idle >= 0
    ? useSession(context, session, context.clock() - idle * 1000)
    : session
}

/** How often the requests of a session tell the auth server that its user is active. Each request would take longer. */
const REPORT_MS = 5_000

/** For a use of the session: the sign-in is in use too, if it has not ended. */
export async function reportUse(context: AppContext, session: Session): Promise<Result<Session>> {
  const { clock, reportedUses, settings } = context
  if (findLoginIdleSeconds(settings, session) === undefined) return session
  const now = clock()
  if (now - (reportedUses.get(session.idHash) ?? 0) < REPORT_MS) return session
  reportedUses.set(session.idHash, now)
  return checkAccess(context, session)
}

const LOOK_AGAIN_MS = 50

/**
 * Of all requests, on all instances that share a database, one renews and the others wait for it: using a refresh
 * token twice ends the grant.
 */
export function renewSession(context: AppContext, session: Session): Promise<Result<Session>> {
  const key = `${session.idHash} ${session.tokenVersion}`
  const running = context.renewals.get(key)
  if (running) return running
  const renewal = renew(context, session).finally(() => context.renewals.delete(key))
  context.renewals.set(key, renewal)
  return renewal
}

async function renew(context: AppContext, session: Session): Promise<Result<Session>> {
  const tokens = openTokens(context.sealer, session)
  if (!tokens) return failApp('session-ended')
  const { refreshToken } = tokens
  if (refreshToken === undefined) return failApp('token-refused')
  const looks = Math.ceil((2 * context.authTimeoutMs) / LOOK_AGAIN_MS)
  for (let look = 0; look < looks; look++) {
    const current = await loadSession(context, session.idHash)
    if (!current) return failApp('session-ended')
    if (current.tokenVersion !== session.tokenVersion) return current
    if (await claimRenewal(context, session)) return redeem(context, session, refreshToken)
    await pause(LOOK_AGAIN_MS)
  }
  return failApp('auth-server-slow')
}

/** Compare-and-set: true for one caller at a time. The claim of an instance that died expires. */
async function claimRenewal({ store, clock, authTimeoutMs }: AppContext, session: Session): Promise<boolean> {
  const now = clock()
  const claimed = await store.db
    .updateTable('app_session')
    .set({ renewing_until: now + computeRenewalClaimMs(authTimeoutMs) })
    .where('id_hash', '=', session.idHash)
    .where('token_version', '=', session.tokenVersion)
    .where(({ or, eb }) => or([eb('renewing_until', 'is', null), eb('renewing_until', '<=', now)]))
    .executeTakeFirst()
  return claimed.numUpdatedRows === 1n
}

async function redeem(context: AppContext, session: Session, refreshToken: string): Promise<Result<Session>> {
  const redeemed = await redeemRefreshToken(context, session, refreshToken)
  if (!isFailure(redeemed)) {
    // Stored before their audit record: the auth server has replaced the refresh token, and nobody else has the new
    // one.
    const kept = await keepTokens(context, session, redeemed, refreshToken)
    await auditSession(context, session, { kind: 'session-renew', status: 200 })
    return kept
  }
  if (redeemed.reason === 'session-ended')
    await endRefused(context, session, 'The auth server refused to renew it')
  else await releaseRenewal(context, session)
  return redeemed
}

function endRefused(context: AppContext, session: Session, reason: string): Promise<void> {
  return endWith(context, session, { allowed: false, status: 401, reason })
}

/** The access ended at the auth server, where it is recorded why. */
async function endOver(context: AppContext, session: Session): Promise<Result<Session>> {
  const reason = 'The user signed out, or the access ended'
  await endWith(context, session, { allowed: true, status: 200, reason })
  return failApp('session-ended')
}

async function endWith(
  context: AppContext,
  session: Session,
  outcome: { readonly allowed: boolean; readonly status: number; readonly reason: string },
): Promise<void> {
  const now = context.clock()
  await context.store.db.transaction().execute(async trx => {
    await trx
      .updateTable('app_session')
      .set({ renewable_until: now })
      .where('id_hash', '=', session.idHash)
      .execute()
    await endSession(trx, session, now)
    await auditSession(context, session, { kind: 'session-end', ...outcome }, trx)
  })
}

async function keepTokens(
  context: AppContext,
  session: Session,
  grant: ReceivedGrant,
  refreshToken: string,
): Promise<Result<Session>> {
  // An auth server that does not rotate refresh tokens omits it (RFC 6749, 6).
  const renewed = { ...grant, tokens: { refreshToken, ...grant.tokens } }
  const { renewAt, renewableUntil } = computeLifetime(renewed, context.clock())
  const tokensSealed = sealTokens(context.sealer, session.idHash, renewed.tokens)
  const kept = await context.store.db
    .updateTable('app_session')
    .set({
      tokens_sealed: tokensSealed,
      token_version: session.tokenVersion + 1,
      scope: grant.scope ?? session.scope,
      renew_at: renewAt,
      renewing_until: null,
      renewable_until: renewableUntil,
    })
    .where('id_hash', '=', session.idHash)
    .where('token_version', '=', session.tokenVersion)
    .where('ended_at', 'is', null)
    .executeTakeFirst()
  // The session ended meanwhile (logout, another launch): nobody may use the new tokens.
  if (kept.numUpdatedRows === 0n) await revokeTokens(context, session, renewed.tokens)
  const current = await loadSession(context, session.idHash)
  return current ?? failApp('session-ended')
}

async function releaseRenewal({ store }: AppContext, session: Session): Promise<void> {
  await store.db
    .updateTable('app_session')
    .set({ renewing_until: null })
    .where('id_hash', '=', session.idHash)
    .where('token_version', '=', session.tokenVersion)
    .execute()
}
