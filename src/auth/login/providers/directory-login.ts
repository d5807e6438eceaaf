import type { FastifyReply, FastifyRequest } from 'fastify'
import { getProviderIssuer, type LdapProvider } from '../../../config/index.ts'
import type { Claims } from '../../../jwt/index.ts'
import { auditEvent } from '../../audit.ts'
import type { PendingAuthorization } from '../../authorize/request.ts'
import type { AuthContext } from '../../context.ts'
import { type Attempt, createAttemptLimit, type RefusedAttempt } from '../attempt.ts'
import { describeLaunch } from '../complete.ts'
import { findSubject } from './account.ts'
import { authenticateAtDirectory } from './ldap.ts'
import { SignInRefusal } from './refusal.ts'
import { completeSignIn, refuseSignIn } from './routes.ts'

/**
 * Logs a user of a directory in. Failures count as those of passwords in the clinician table do. Returns a refused
 * attempt, for which the form is shown again.
 */
export async function logInAtDirectory(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
  provider: LdapProvider,
  pending: PendingAuthorization | undefined,
  attempt: Attempt,
): Promise<FastifyReply | RefusedAttempt['kind']> {
  const limit = createAttemptLimit(context, { ...attempt, username: `${provider.id}/${attempt.username}` })
  const refuse = async (kind: RefusedAttempt['kind']) => {
    context.metrics.signIns.add([provider.id, kind])
    await recordFailure(kind)
    return kind
  }
  if ((await limit.wait()) > 0) return refuse('too-many')
  const claims = await authenticateAtDirectory(provider, attempt.username, attempt.password).catch(
    (error: unknown) => {
      request.log.warn({ provider: provider.id, err: error }, 'Cannot use the directory')
      return new SignInRefusal('unreachable')
    },
  )
  if (claims instanceof SignInRefusal)
    return refuseSignIn(context, request, reply, claims, { provider, pending })
  if ((await limit.wait()) > 0) return refuse('too-many')
  if (claims === 'wrong') return refuse('wrong')
  await limit.clear(context.store.db)
  return completeDirectoryLogin(claims)

  function completeDirectoryLogin(found: Claims): Promise<FastifyReply> {
    const subject = findSubject(provider, found)
    if (subject === undefined) {
      const refusal = new SignInRefusal('bad-claims', 'The entry has neither entryUUID nor objectGUID')
      return refuseSignIn(context, request, reply, refusal, { provider, pending })
    }
    const login = { issuer: getProviderIssuer(provider), subject, amr: ['pwd'], authTime: context.clock() }
    return completeSignIn(context, request, reply, { provider, pending, user: { login, claims: found } })
  }

  async function recordFailure(kind: RefusedAttempt['kind']): Promise<void> {
    const failure =
      kind === 'wrong'
        ? { status: 401, reason: `${provider.id}: Wrong username or password` }
        : { status: 429, reason: `${provider.id}: Too many failed attempts` }
    const event = {
      kind: 'login',
      allowed: false,
      anonymous: true,
      ...failure,
      ...describeLaunch(pending),
    } as const
    await context.store.db.transaction().execute(async trx => {
      if (kind === 'wrong') await limit.add(trx)
      await auditEvent(context, request, event, trx)
    })
  }
}
