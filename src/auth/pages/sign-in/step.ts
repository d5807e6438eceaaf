import type { FastifyReply, FastifyRequest } from 'fastify'
import { paths } from '../../base/paths.ts'
import { type Parameters, readParameters } from '../../base/request.ts'
import { findPendingAuthorization, type PendingAuthorization } from '../../oauth/authorize/request.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { type FoundLogin, findPendingLogin } from '../../users/sign-in/pending-login.ts'
import { findWaitingStep, type LoginStep } from '../../users/sign-in/sign-in-step.ts'
import { type AuthenticatedUser, completeLogin, STEPS, withInteraction } from './complete.ts'

/** A page of a sign-in that waits for this step. */
export interface StepRequest {
  readonly found: FoundLogin
  readonly account: NonNullable<Awaited<ReturnType<typeof findWaitingStep>>>['account']
  /** The authorization request that continues after the sign-in. */
  readonly pending: PendingAuthorization | undefined
  readonly parameters: Parameters
  /** The form's redirects lead to the client, and the content security policy applies to all of them. */
  readonly formTargets: readonly string[]
}

/** Handles a step of the sign-in of this browser, or takes the browser to the step that it waits for. */
export function requireStep(
  context: AuthContext,
  step: LoginStep,
  handle: (context: AuthContext, reply: FastifyReply, request: StepRequest) => Promise<FastifyReply>,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  return async (request, reply) => {
    const parameters = readParameters(request.method === 'GET' ? request.query : request.body)
    const pending = await findPendingAuthorization(context, parameters)
    const found = await findPendingLogin(context, request)
    const waiting = found && (await findWaitingStep(context, found))
    if (found && waiting?.step === step) {
      const formTargets = pending ? [pending.request.redirectUri] : []
      return handle(context, reply, { found, account: waiting.account, pending, parameters, formTargets })
    }
    return reply.redirect(withInteraction(waiting ? STEPS[waiting.step].path : paths.login, pending), 303)
  }
}

/** Continues the sign-in after a step. If the account changed meanwhile, it begins again. */
export function completeStep(
  context: AuthContext,
  reply: FastifyReply,
  { found, pending }: StepRequest,
  authenticated: Omit<AuthenticatedUser, 'provider' | 'retry'>,
): Promise<FastifyReply> {
  const retry = async () => reply.redirect(withInteraction(paths.login, pending), 303)
  return completeLogin(context, reply, { provider: found.login.provider, ...authenticated, retry }, pending)
}
