import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Transaction } from 'kysely'
import type { Schema } from '../../store/index.ts'
import { auditEvent } from '../audit.ts'
import type { PendingAuthorization } from '../authorize/pending-authorization.ts'
import type { Clinician } from '../clinician/clinician.ts'
import type { AuthContext } from '../context.ts'
import { paths } from '../paths.ts'
import { beginLogin, findLastLogin, type ProviderLogin, setLoginCookie } from './login.ts'
import { takeReturnPath } from './return-path.ts'

/** An authenticated user, who is not logged in yet. */
export interface AuthenticatedUser {
  /** Stores what the login changes, in its transaction, and returns the clinician. */
  store(trx: Transaction<Schema>): Promise<Pick<Clinician, 'id' | 'fhirUserId'>>
  readonly provider?: ProviderLogin
  /** How the user authenticated, for the audit trail. */
  readonly reason?: string
}

/** Logs the user in and continues the authorization request, returns to a page that required it, or shows the portal. */
export async function completeLogin(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
  user: AuthenticatedUser,
  pending: PendingAuthorization | undefined,
): Promise<FastifyReply> {
  const before = await findLastLogin(context, request)
  const { id, clinicianId } = await context.store.db.transaction().execute(async trx => {
    const clinician = await user.store(trx)
    const login = { clinicianId: clinician.id, before, provider: user.provider }
    const begun = await beginLogin(context, trx, login)
    const event = {
      kind: 'login',
      status: 302,
      clinician,
      reason: user.reason,
      ...describeLaunch(pending),
    } as const
    await auditEvent(context, request, event, trx)
    return { id: begun, clinicianId: clinician.id }
  })
  const { providers, metrics } = context
  metrics.signIns.add([providers.findByIssuer(user.provider?.issuer)?.id ?? 'password', 'success'])
  setLoginCookie(context, reply, id)
  request.log.info({ clinicianId }, 'Clinician logged in')
  const returnPath = takeReturnPath(context, request, reply) ?? paths.portal
  return reply.redirect(pending ? `${paths.resume}?interaction=${pending.id}` : returnPath, 302)
}

/** The client and launch that the login belongs to. */
export function describeLaunch(pending: PendingAuthorization | undefined) {
  return pending && { client: pending.request.clientId, launch: pending.request.launchId }
}
