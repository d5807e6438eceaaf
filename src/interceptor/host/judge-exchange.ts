import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Interaction, Misunderstood } from '../../fhir/index.ts'
import { type Access, type EnforcementPolicy, type Grant, satisfies } from '../../smart/index.ts'
import { type Entry, readEntries } from '../decision/bundle.ts'
import type { Decision } from '../decision/decision.ts'
import { judgeRequest } from '../decision/judge-request.ts'
import type { Refusal } from '../refusal.ts'
import { jsonOf } from './body.ts'
import { conditionalTypes } from './conditional-references.ts'
import { holdAnswer } from './hold-answer.ts'
import type { HostOptions } from './host.ts'
import { hostRefusal, isWhole, refused } from './host-rules.ts'
import { answerJudge } from './judge-answer.ts'

/** A request on its way through a host. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** As the host will route it. */
  readonly url: string
  /** As the host's parser left it. */
  readonly body: unknown
}

/** What was decided on a request, for the host to look at. */
export interface Smart {
  readonly grant: Grant
  readonly interaction: Interaction
  readonly decision: Extract<Decision, { allowed: true }>
}

const smarts = new WeakMap<object, Smart>()

/** What was decided on a request (of Node; `request.raw` in fastify): its grant, interaction, decision and access. */
export function smartOf(request: object): Smart | undefined {
  return smarts.get(request)
}

/** Why a request is refused; else the host may answer it, and its answer is held back where it must be judged. */
export async function judgeExchange(
  exchange: Exchange,
  interaction: Interaction,
  grant: Grant,
  policy: EnforcementPolicy,
  options: HostOptions,
): Promise<Refusal | undefined> {
  const body = jsonOf(interaction, exchange.body)
  const decision = judgeRequest(interaction, body, grant, policy)
  if (!decision.allowed) return decision.refusal
  const entries =
    interaction.kind === 'bundle'
      ? understood(readEntries(body, policy.fhirBaseUrl, grant, decision.access))
      : []
  if ('kind' in entries) return entries
  smarts.set(exchange.request, { grant, interaction, decision })
  if (options.appliesAccess) return undefined
  if ('posted' in interaction && exchange.body === undefined && hasBody(exchange.request))
    return refused('its body was not read')
  // The host resolves them from all of its data.
  if (!conditionalTypes(body).every(type => isWhole(decision.access.filterFor(type, 's'))))
    return refused('what a conditional reference matches may be outside the grant')
  for (const part of [{ interaction, body }, ...entries]) {
    const refusal = await partRefusal(part.interaction, part.body, decision.access, policy, options)
    if (refusal) return refusal
  }
  const interactions = entries.map(entry => entry.interaction)
  return hold(exchange, answerJudge(interaction, interactions, decision.access, policy.fhirBaseUrl))
}

type Understood = Entry & { readonly interaction: Interaction }

function understood(entries: readonly Entry[] | Misunderstood): readonly Understood[] | Misunderstood {
  if ('kind' in entries) return entries
  const kept: Understood[] = []
  for (const { interaction, body } of entries) {
    if (interaction.kind === 'misunderstood') return interaction
    kept.push({ interaction, body })
  }
  return kept
}

function hold({ request, response }: Exchange, judge: ReturnType<typeof answerJudge>): Refusal | undefined {
  if (!judge) return undefined
  if (request.method === 'HEAD') return refused('an answer without a body cannot be judged')
  holdAnswer(response, judge)
  return undefined
}

/** What only the host could keep within the grant, as far as it does not tell what is stored. */
async function partRefusal(
  interaction: Interaction,
  body: unknown,
  access: Access,
  { fhirBaseUrl }: EnforcementPolicy,
  { stored, versionAccess = 'current' }: HostOptions,
): Promise<Refusal | undefined> {
  const refusal = hostRefusal(interaction, access, fhirBaseUrl)
  if (refusal) return refusal
  const { kind } = interaction
  // The versions themselves are judged in the answer.
  if ((kind === 'vread' || kind === 'history-instance') && versionAccess === 'current') {
    const filter = access.filterFor(interaction.type, 'r')
    if (isWhole(filter)) return undefined
    if (!stored) return refused('it does not tell what is stored')
    const current = await stored(interaction.type, interaction.id)
    return current && satisfies(current, filter, fhirBaseUrl) ? undefined : STORED_OUTSIDE
  }
  if (kind !== 'create' && kind !== 'update' && kind !== 'delete') return undefined
  const filter = access.filterFor(
    interaction.type,
    ({ create: 'c', update: 'u', delete: 'd' } as const)[kind],
  )
  if (isWhole(filter)) return undefined
  if (kind !== 'delete' && body === undefined) return refused('its body was not read')
  if (kind === 'create') return undefined
  if (!stored) return refused('it does not tell what is stored')
  const current = await stored(interaction.type, interaction.id)
  const within = current ? satisfies(current, filter, fhirBaseUrl) : kind === 'update'
  return within ? undefined : STORED_OUTSIDE
}

const STORED_OUTSIDE: Refusal = { kind: 'not-within', hint: 'The stored resource is not within the grant' }

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
