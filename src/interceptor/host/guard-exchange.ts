import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Access, type Grant, isWithin } from '../../consent/index.ts'
import {
  authorizationOf,
  type Interaction,
  isPublic,
  type Misunderstood,
  parseInteraction,
  type Refused,
} from '../../fhir/index.ts'
import { readEntries } from '../decision/bundle.ts'
import type { Decision } from '../decision/decision.ts'
import { judgeRequest } from '../decision/judge-request.ts'
import { type Caller, createInterceptor } from '../interceptor.ts'
import type { Refusal } from '../refusal.ts'
import { refuse } from '../refuse.ts'
import { withoutSlash } from '../token/check-claims.ts'
import { formText, jsonOf } from './body.ts'
import { holdAnswer } from './hold-answer.ts'
import type { HostOptions } from './host.ts'
import { hostRefusal, isWhole, refused } from './host-rules.ts'
import { answerJudge } from './judge-answer.ts'

/** What was decided on a request, for the host to look at. */
export interface Smart {
  readonly grant: Grant
  readonly interaction: Interaction
  readonly decision: Extract<Decision, { allowed: true }>
}

/** A request on its way through a host. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** As the host will route it. */
  readonly url: string
  /** As the host's parser left it. */
  readonly body: unknown
}

const smarts = new WeakMap<object, Smart>()

/** What was decided on a request (of Node; `request.raw` in fastify): its grant, interaction, decision and access. */
export function smartOf(request: object): Smart | undefined {
  return smarts.get(request)
}

export interface HostGuard {
  /** Judges the token alone, before the body is read. */
  admit(request: IncomingMessage, url: string): Promise<Refused | undefined>
  /** Judges the whole request, and has the answer held back and judged where that is needed. */
  guard(exchange: Exchange): Promise<Refused | undefined>
  close(): void
}

/** One guard below all frameworks, so that the adapters have nothing to decide. */
export function hostGuard(options: HostOptions): HostGuard {
  const interceptor = createInterceptor(options)
  const basePath = withoutSlash(options.basePath ?? new URL(options.fhirBaseUrl).pathname)
  void interceptor.start()

  const callerOf = (request: IncomingMessage) => interceptor.admit(authorizationOf(request.rawHeaders))

  async function admit(request: IncomingMessage, url: string): Promise<Refused | undefined> {
    if (isPreflight(request) || isPublic(interactionOf(request, url, undefined, basePath))) return undefined
    const caller = await callerOf(request)
    return caller.allowed ? undefined : caller
  }

  async function guard(exchange: Exchange): Promise<Refused | undefined> {
    const { request, url } = exchange
    const interaction = interactionOf(request, url, formText(exchange.body), basePath)
    if (isPreflight(request) || isPublic(interaction)) return undefined
    const caller = await callerOf(request)
    if (!caller.allowed) return caller
    if (interaction.kind === 'misunderstood') return refuse(interaction)
    const refusal = await judge(interaction, caller, exchange)
    return refusal && refuse(refusal)
  }

  async function judge(
    interaction: Interaction,
    { grant }: Caller,
    exchange: Exchange,
  ): Promise<Refusal | undefined> {
    const { fhirBaseUrl } = interceptor.policy
    const body = jsonOf(interaction, exchange.body)
    const decision = judgeRequest(interaction, body, grant, interceptor.policy)
    if (!decision.allowed) return decision.refusal
    const entries = interaction.kind === 'bundle' ? readEntries(body, fhirBaseUrl) : []
    if ('kind' in entries) return entries
    smarts.set(exchange.request, { grant, interaction, decision })
    if (options.appliesAccess) return undefined
    if ('posted' in interaction && exchange.body === undefined && hasBody(exchange.request))
      return refused('its body was not read')
    const parts = [{ interaction, body }, ...entries]
    for (const part of parts) {
      if (part.interaction.kind === 'misunderstood') return part.interaction
      const refusal = await hostJudge(part.interaction, part.body, decision.access, options)
      if (refusal) return refusal
    }
    const interactions = entries.flatMap(entry =>
      entry.interaction.kind === 'misunderstood' ? [] : entry.interaction,
    )
    const judgeAnswer = answerJudge(interaction, interactions, decision.access, fhirBaseUrl)
    if (!judgeAnswer) return undefined
    if (exchange.request.method === 'HEAD') return refused('an answer without a body cannot be judged')
    holdAnswer(exchange.response, judgeAnswer)
    return undefined
  }

  const safely = (judged: Promise<Refused | undefined>) =>
    judged.catch(error => {
      options.onError?.(error)
      return refuse({ kind: 'broken' })
    })
  return {
    admit: (request, url) => safely(admit(request, url)),
    guard: exchange => safely(guard(exchange)),
    close: () => interceptor.close(),
  }
}

/** What only the host could keep within the grant, as far as it was not told how. */
async function hostJudge(
  interaction: Interaction,
  body: unknown,
  access: Access,
  { stored, fhirBaseUrl }: HostOptions,
): Promise<Refusal | undefined> {
  const refusal = hostRefusal(interaction, access, withoutSlash(fhirBaseUrl))
  if (refusal) return refusal
  if (interaction.kind === 'create' && body === undefined && !isWhole(access.reach(interaction.type, 'c')))
    return refused('its body was not read')
  if (interaction.kind !== 'update' && interaction.kind !== 'delete') return undefined
  const { type, id } = interaction
  const reach = access.reach(type, interaction.kind === 'update' ? 'u' : 'd')
  if (isWhole(reach)) return undefined
  if (!stored) return refused('it does not tell what is stored')
  if (interaction.kind === 'update' && body === undefined) return refused('its body was not read')
  const current = await stored(type, id)
  const within = current ? isWithin(current, reach, withoutSlash(fhirBaseUrl)) : interaction.kind === 'update'
  return within ? undefined : { kind: 'not-within', hint: 'What is stored there is not within the grant' }
}

// Contract 5.6: a browser asks before it has a token.
function isPreflight({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  )
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function interactionOf(
  { method = '', headers }: IncomingMessage,
  url: string,
  form: string | undefined,
  basePath: string,
): Interaction | Misunderstood {
  const at = url.indexOf('?')
  const path = at < 0 ? url : url.slice(0, at)
  // Whatever is mounted here is guarded; what is not below the base is no FHIR request, and nothing else is let by.
  const below =
    path === basePath || path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : 'elsewhere'
  return parseInteraction({ method, path: below, query: at < 0 ? '' : url.slice(at + 1), headers, form })
}
