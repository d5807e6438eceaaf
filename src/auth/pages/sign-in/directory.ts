import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyReply } from 'fastify'
import { getProviderIssuer, type LdapProvider } from '../../../config/index.ts'
import { isFailure } from '../../../core/index.ts'
import type { Claims } from '../../../jwt/index.ts'
import { auditEvent, describeRefused } from '../../base/audit.ts'
import type { PendingAuthorization } from '../../oauth/authorize/request.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { type Attempt, createAttemptLimit } from '../../users/attempt.ts'
import { readNames } from '../../users/providers/identity.ts'
import {
  authenticateAtDirectory,
  type BindResult,
  type DirectoryAccount,
  type GuardBind,
  type RefusedBind,
} from '../../users/providers/ldap/directory.ts'
import { SignInRefusal } from '../../users/providers/refusal.ts'
import { findSender } from '../../users/senders.ts'
import { findLink, findSubject } from '../../users/sign-in/account.ts'
import { describeLaunch } from './complete.ts'
import { completeSignIn, refuseSignIn } from './provider-routes.ts'

/**
 * Logs a user of a directory in. Failures count like those of passwords of this server. Returns a refused
 * attempt, for which the form is shown again.
 */
export async function logInAtDirectory(
  context: AuthContext,
  reply: FastifyReply,
  provider: LdapProvider,
  pending: PendingAuthorization | undefined,
  attempt: Attempt,
): Promise<FastifyReply | RefusedBind['reason']> {
  const { request } = reply
  const arrived = performance.now()
  const result = await authenticateAtDirectory(provider, attempt, guardBind).catch((error: unknown) => {
    request.log.warn({ provider: provider.id, err: error }, 'Cannot use the directory')
    return new SignInRefusal('unreachable')
  })
  if (result instanceof SignInRefusal) return refuseSignIn(context, reply, result, { provider, pending })
  if (!isFailure(result)) return completeDirectoryLogin(result.claims)
  context.metrics.signIns.add([provider.id, result.reason === 'password-wrong' ? 'wrong' : 'too-many'])
  await recordFailure(result)
  await pauseUntilNextStep(arrived)
  return result.reason

  /** One attempt at an account at a time: those that wait see whether the attempts before them failed. */
  async function guardBind(
    { name, claims }: DirectoryAccount,
    bind: () => Promise<BindResult>,
  ): ReturnType<GuardBind> {
    const username = `${provider.id}/${name}`
    const user = await findUser(claims)
    const { browser: apart } = await findSender(context.store.db, user?.id ?? '', attempt)
    const limit = createAttemptLimit(context, { username, address: attempt.address, apart })
    return context.takeDirectoryTurn([username], async () => {
      const reservation = await limit.reserve()
      if (!reservation) return 'too-many'
      const result = await bind()
      if (result === 'right') {
        await limit.clear(context.store.db)
        await reservation.release(context.store.db)
      }
      return result
    })
  }

  function completeDirectoryLogin(found: Claims): Promise<FastifyReply> {
    const subject = findSubject(provider, found)
    if (subject === undefined) {
      const refusal = new SignInRefusal('bad-claims', 'The entry has neither entryUUID nor objectGUID')
      return refuseSignIn(context, reply, refusal, { provider, pending })
    }
    const login = { issuer: getProviderIssuer(provider), subject, amr: ['pwd'], authTime: context.clock() }
    return completeSignIn(context, reply, { provider, pending, user: { login, claims: found } })
  }

  /** Records the user only if the directory has the username: the field may contain a mistyped password. */
  async function recordFailure({ reason: refusal, claims }: RefusedBind): Promise<void> {
    const { reason, ...refused } = describeRefused(refusal)
    const event = { kind: 'login', anonymous: true, ...refused } as const
    const user = await findUser(claims)
    return auditEvent(context, request, {
      ...event,
      ...(user ? { user: { id: user.id, fhirUserId: user.fhir_user_id } } : { subject: nameUser(claims) }),
      reason: `${provider.id}: ${reason}`,
      ...describeLaunch(pending),
    })
  }

  function findUser(claims: Claims | undefined) {
    const subject = claims && findSubject(provider, claims)
    return subject === undefined
      ? undefined
      : findLink(context.store.db, getProviderIssuer(provider), subject)
  }

  /** A user who never signed in has no account, and is recorded by the directory's own spelling of the username. */
  function nameUser(claims: Claims | undefined): string | undefined {
    const names = claims && readNames(provider, claims)
    return names && !isFailure(names) ? `${provider.id}/${names.username}` : undefined
  }
}

/**
 * A directory answers in a few milliseconds for an unknown user and in a hundred for a known one, whose password it
 * compares. A refusal is sent at the next multiple of this time, so that its time does not reveal which users exist.
 */
const REFUSAL_STEP_MS = 500

async function pauseUntilNextStep(since: number): Promise<void> {
  await pause(REFUSAL_STEP_MS - ((performance.now() - since) % REFUSAL_STEP_MS))
}
