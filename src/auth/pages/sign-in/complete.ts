import type { FastifyReply } from 'fastify'
import type { Transaction } from 'kysely'
import type { Schema } from '../../../store/index.ts'
import { auditEvent } from '../../base/audit.ts'
import { paths } from '../../base/paths.ts'
import type { AuthUser } from '../../base/user.ts'
import type { PendingAuthorization } from '../../oauth/authorize/request.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { Login } from '../../users/find-login.ts'
import { beginLogin, findLastLogin, setLoginCookie } from '../../users/login.ts'
import type { ProviderLogin } from '../../users/providers/provider-login.ts'
import { findReturnPath, forgetReturnPath, rememberUser } from '../../users/return-path.ts'
import { rememberSender, setBrowserCookie } from '../../users/senders.ts'
import { clearPendingCookie, setPendingCookie, storePendingLogin } from '../../users/sign-in/pending-login.ts'
import { findNextStep, type LoginStep } from '../../users/sign-in/sign-in-step.ts'

/** An authenticated user, who is not logged in yet. */
export interface AuthenticatedUser {
  /** Stores the changes of the login, in its transaction. Undefined if the account changed after the authentication. */
  store(trx: Transaction<Schema>): Promise<Pick<AuthUser, 'id' | 'fhirUserId'> | undefined>
  readonly provider?: ProviderLogin | undefined
  /** How this server or a directory authenticated the user (RFC 8176). Undefined if an OpenID provider did. */
  readonly methods?: readonly string[] | undefined
  /** Authenticates the user again and responds, because the account changed. */
  retry(): Promise<FastifyReply>
  /** How the user authenticated, for the audit trail. */
  readonly reason?: string
  /** Shows a page to the user, who is now logged in, before they continue. */
  showFirst?(reply: FastifyReply, next: string): FastifyReply
}

export const STEPS = {
  'second-factor': { path: paths.loginFactor, reason: 'Password accepted, a second factor is required' },
  enrol: { path: paths.loginEnrol, reason: 'Password accepted, a second factor must be added' },
  'new-password': { path: paths.loginNewPassword, reason: 'Password accepted, a new one is required' },
} as const satisfies Readonly<Record<LoginStep, object>>

/**
 * Asks for the next step of the sign-in, or logs the user in and continues the authorization request, returns to a page that
 * required it, or shows the portal.
 */
export async function completeLogin(
  context: AuthContext,
  reply: FastifyReply,
  authenticated: AuthenticatedUser,
  pending: PendingAuthorization | undefined,
): Promise<FastifyReply> {
  const { request } = reply
  const before = await findLastLogin(context, request)
  const stored = await context.store.db.transaction().execute(async trx => {
    const user = await authenticated.store(trx)
    if (!user) return undefined
    const { provider, methods, reason } = authenticated
    const event = { kind: 'login', status: 302, user, ...describeLaunch(pending) } as const
    const next = methods && (await findNextStep(context, trx, { userId: user.id, provider, methods }))
    if (next) {
      const pendingId = await storePendingLogin(context, trx, next.login)
      await auditEvent(context, request, { ...event, reason: STEPS[next.step].reason }, trx)
      return { step: next.step, pendingId }
    }
    const id = await beginLogin(context, trx, { userId: user.id, before, provider, methods, request })
    if (before && before.user.id !== user.id) await auditEvent(context, request, replace(before), trx)
    const browser = methods && (await rememberSender(context, trx, request, user.id))
    await auditEvent(context, request, { ...event, reason }, trx)
    return { id, userId: user.id, browser }
  })
  if (!stored) return authenticated.retry()
  if (stored.step) return sendToStep(context, reply, stored, pending)
  clearPendingCookie(context, reply)
  const { id, userId, browser } = stored
  const { rules, metrics } = context
  metrics.signIns.add([rules.findByIssuer(authenticated.provider?.issuer)?.id ?? 'password', 'success'])
  setLoginCookie(context, reply, id)
  if (browser !== undefined) setBrowserCookie(context, reply, browser)
  request.log.info({ clinicianId: userId }, 'User logged in')
  rememberUser(context, reply, userId)
  const returnPath = findReturnPath(context, request, userId) ?? paths.portal
  forgetReturnPath(context, reply)
  const next = pending ? withInteraction(paths.resume, pending) : returnPath
  return authenticated.showFirst?.(reply, next) ?? reply.redirect(next, 302)
}

/** Computers are shared: the sign-in of the previous user has ended as by a sign-out (LOGIN-18). */
function replace({ user }: Login) {
  return { kind: 'logout', status: 302, user, reason: 'Another user signed in in the same browser' } as const
}

function sendToStep(
  context: AuthContext,
  reply: FastifyReply,
  { step, pendingId }: { readonly step: LoginStep; readonly pendingId: string },
  pending: PendingAuthorization | undefined,
): FastifyReply {
  setPendingCookie(context, reply, pendingId)
  return reply.redirect(withInteraction(STEPS[step].path, pending), 302)
}

/** The path of a page of the sign-in, which continues the authorization request. */
export function withInteraction(path: string, pending: PendingAuthorization | undefined): string {
  return pending ? `${path}?interaction=${pending.id}` : path
}

/** The client and launch that the login belongs to. */
export function describeLaunch(pending: PendingAuthorization | undefined) {
  return pending && { client: pending.request.clientId, launch: pending.request.launchId }
}
