import type { FastifyReply } from 'fastify'
import type { AuthContext } from '../context.ts'
import type { Login } from '../login/login.ts'
import type { Parameters } from '../parameters.ts'
import { Refusal } from '../refusal.ts'
import { type Interaction, interactionOf } from './interaction.ts'
import { type NextStep, nextStep, type Situation } from './next-step.ts'
import { proceed, situationOf } from './proceed.ts'
import { sendOver, sendRefusal } from './respond.ts'

/** A stored request at a page of its user. */
export interface Waiting {
  readonly kind: 'waiting'
  readonly interaction: Interaction
  readonly situation: Situation
  readonly login: Login
}

/** What is there instead of the page. */
export type Elsewhere =
  | { readonly kind: 'over' }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly interaction: Interaction }
  | { readonly kind: 'another-step'; readonly interaction: Interaction }

/** The request that a page belongs to, if one of these steps is what comes next. */
export async function waitingFor(
  reply: FastifyReply,
  context: AuthContext,
  parameters: Parameters,
  steps: readonly NextStep['kind'][],
): Promise<Waiting | Elsewhere> {
  const interaction = await interactionOf(context, parameters)
  if (!interaction) return { kind: 'over' }
  const request = steps.includes('pick') ? unpicked(interaction) : interaction.request
  const situation = await situationOf(reply, context, { request })
  if (situation instanceof Refusal) return { kind: 'refused', refusal: situation, interaction }
  const { login } = situation
  return login && steps.includes(nextStep(situation).kind)
    ? { kind: 'waiting', interaction, situation, login }
    : { kind: 'another-step', interaction }
}

// A choice that was made before may be changed by going back, up to the code.
function unpicked({ request: { picked: _, ...request } }: Interaction): Situation['request'] {
  return request
}

export async function sendElsewhere(
  reply: FastifyReply,
  context: AuthContext,
  elsewhere: Elsewhere,
): Promise<FastifyReply> {
  switch (elsewhere.kind) {
    case 'over':
      return sendOver(reply, context)
    case 'refused':
      return sendRefusal(reply, context, elsewhere.refusal, {
        request: elsewhere.interaction.request,
      })
    case 'another-step':
      return proceed(reply, context, elsewhere.interaction)
  }
}
