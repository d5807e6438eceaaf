import type { FastifyReply, FastifyRequest } from 'fastify'
import { paths } from '../../base/paths.ts'
import { type Parameters, readParameters } from '../../base/request.ts'
import { findPendingAuthorization, type PendingAuthorization } from '../../oauth/authorize/request.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { findWaitingStep, type LoginStep } from '../../users/sign-in/next-step.ts'
import { type FoundLogin, findPendingLogin } from '../../users/sign-in/pending-login.ts'
import { STEPS, withInteraction } from './complete.ts'

/** A page of a sign-in that waits for this step. */
export interface StepRequest {
  readonly found: FoundLogin
  readonly account: NonNullable<Awaited<ReturnType<typeof findWaitingStep>>>['account']
  /** The authorization request that continues after the sign-in. */
  readonly pending: PendingAuthorization | undefined
  readonly parameters: Parameters
}

/** Handles a step of the sign-in of this browser, or takes the browser to the step that it waits for. */
export function requireStep(
  context: AuthContext,
  step: LoginStep,
  handle: (reply: FastifyReply, request: StepRequest) => Promise<FastifyReply>,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  return async (request, reply) => {
    const parameters = readParameters(request.method === 'GET' ? request.query : request.body)
    const pending = await findPendingAuthorization(context, parameters)
    const found = await findPendingLogin(context, request)
    const waiting = found && (await findWaitingStep(context, found))
    if (found && waiting?.step === step)
      return handle(reply, { found, account: waiting.account, pending, parameters })
    return reply.redirect(withInteraction(waiting ? STEPS[waiting.step].path : paths.login, pending), 303)
  }
}
