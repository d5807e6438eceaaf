import type { FastifyRequest } from 'fastify'
import { isFailure } from '../../../core/index.ts'
import type { AuthRefusal } from '../../base/refusal.ts'
import type { Parameters } from '../../base/request.ts'
import type { Login } from '../../users/find-login.ts'
import type { AuthContext } from '../context.ts'
import { type AuthorizationState, chooseNextStep, type NextStep } from './choose-step.ts'
import { loadState, proceed } from './proceed.ts'
import { type AuthorizationStep, expire, recordRefusal } from './refuse.ts'
import { findPendingAuthorization, type PendingAuthorization } from './request.ts'

/** A stored request whose user is on one of our pages. */
export interface Waiting {
  readonly kind: 'waiting'
  readonly pending: PendingAuthorization
  readonly state: AuthorizationState
  readonly login: Login
}

/** Why the page is not shown. */
export type OtherOutcome =
  | { readonly kind: 'expired' }
  | { readonly kind: 'refused'; readonly refusal: AuthRefusal; readonly pending: PendingAuthorization }
  | { readonly kind: 'another-step'; readonly pending: PendingAuthorization }

/** Finds the request of a page, if one of these steps is next. */
export async function findWaiting(
  http: FastifyRequest,
  context: AuthContext,
  parameters: Parameters,
  steps: readonly NextStep['kind'][],
): Promise<Waiting | OtherOutcome> {
  const pending = await findPendingAuthorization(context, parameters)
  if (!pending) return { kind: 'expired' }
  const request = steps.includes('pick') ? forgetPicked(pending) : pending.request
  const state = await loadState(http, context, { request })
  if (isFailure(state)) return { kind: 'refused', refusal: state, pending }
  const { login } = state
  return login && steps.includes(chooseNextStep(state).kind)
    ? { kind: 'waiting', pending, state, login }
    : { kind: 'another-step', pending }
}

// The user may go back and change the choice until the code is issued.
function forgetPicked({
  request: { picked: _, ...request },
}: PendingAuthorization): AuthorizationState['request'] {
  return request
}

/** What happens instead of the page. */
export async function resolveOtherOutcome(
  http: FastifyRequest,
  context: AuthContext,
  outcome: OtherOutcome,
): Promise<AuthorizationStep> {
  switch (outcome.kind) {
    case 'expired':
      return expire(http, context)
    case 'refused':
      return recordRefusal(http, context, outcome.refusal, {
        request: outcome.pending.request,
      })
    case 'another-step':
      return proceed(http, context, outcome.pending)
  }
}
