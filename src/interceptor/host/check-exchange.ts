import type { IncomingMessage, ServerResponse } from 'node:http'
import { describeError, isFailure, isRecord, mapOrFail } from '../../core/index.ts'
import {
  failFor,
  type Interaction,
  type Misunderstood,
  mayWrite,
  parseLimited,
  type Resource,
  type Work,
} from '../../fhir/index.ts'
import { type Access, type EnforcementPolicy, type Grant, satisfies } from '../../smart/index.ts'
import { type CheckedEntry, checkRequest, createHostWork, readEntries } from '../decision/check-request.ts'
import type { Decision } from '../decision/decision.ts'
import type { HostOptions } from '../interceptor.ts'
import { type Refusal, refuse } from '../refuse.ts'
import { createResponseCheck, holdResponse, readsWholeType } from './check-response.ts'
import { checkHostRules, findConditionalTypes, isEverything } from './host-rules.ts'
import type { Observed } from './observe.ts'

/** A request to a host and its response. */
export interface HostExchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** As the host routes it. */
  readonly url: string
  /** As the host's parser leaves it. */
  readonly body: unknown
  /** Of the client, as the host determines it behind proxies. */
  readonly address?: string | undefined
}

/** The authorization of a request, for the host's own use. */
export interface Authorization {
  readonly grant: Grant
  readonly interaction: Interaction
  readonly decision: Extract<Decision, { allowed: true }>
}

const authorizations = new WeakMap<object, Authorization>()

/** Returns the authorization of a Node request (`request.raw` in fastify). */
export function getAuthorization(request: object): Authorization | undefined {
  return authorizations.get(request)
}

/** Checks a request. If the host may process it, its response is held back and checked where necessary. */
export async function checkExchange(
  exchange: HostExchange,
  interaction: Interaction,
  grant: Grant,
  policy: EnforcementPolicy,
  options: HostOptions,
  observed?: Observed,
): Promise<Refusal | undefined> {
  const body = readJson(interaction, exchange.body)
  observed?.note({ interaction, requestBody: body })
  const work = createHostWork()
  const decision = checkRequest(interaction, body, grant, policy, undefined, work)
  if (!decision.allowed) return decision.refusal
  const entries =
    interaction.kind === 'bundle'
      ? requireReadable(readEntries(body, policy.fhirBaseUrl, grant, decision.access, createHostWork()))
      : []
  if (isFailure(entries)) return entries
  authorizations.set(exchange.request, { grant, interaction, decision })
  const { by } = decision
  const interactions = entries.map(entry => entry.interaction)
  observed?.note({ by: typeof by === 'string' ? by : by.text, entries: interactions })
  if (options.appliesAccess) return undefined
  if ('posted' in interaction && isUnread(exchange.body) && hasBody(exchange.request))
    return failFor('body-not-read')
  const { access } = decision
  if (hasProvenance(exchange, interaction) && !isEverything(access.filterFor('Provenance', 'c')))
    return failFor('provenance-not-checked')
  // The host searches all of its data for them.
  if (!findConditionalTypes(body).every(type => isEverything(access.filterFor(type, 's'))))
    return failFor('reference-not-limited')
  for (const part of [{ interaction, body }, ...entries]) {
    const refusal = await checkPart(part, { ...options, access, fhirBaseUrl: policy.fhirBaseUrl, work })
    if (refusal) return refusal
  }
  const check = createResponseCheck(interaction, interactions, access, policy.fhirBaseUrl)
  if (!check) return undefined
  if (exchange.request.method === 'HEAD')
    return readsWholeType(interaction, access) ? undefined : failFor('response-without-body')
  if (exchange.request.method === 'GET' && !readsWholeType(interaction, access))
    for (const name of CONDITIONS) delete exchange.request.headers[name]
  const reportError = createReporter(exchange, options)
  const checkHeld = (held: Parameters<typeof check>[0]) => {
    const verdict = check(held)
    if (typeof verdict !== 'object') return verdict
    // A failure of the host that is only reworded keeps its status.
    if (!verdict.allowed && verdict.status !== held.status) observed?.refuse(verdict)
    if (verdict.found !== undefined) reportError(verdict.found)
    return verdict
  }
  holdResponse(exchange.response, checkHeld, error => {
    observed?.refuse(refuse(failFor('broken')))
    reportError(describeError(error))
  })
  return undefined
}

/** Reports a fault of the host's response. An error in `onError` must not release the response. */
function createReporter({ request, url }: HostExchange, { onError }: HostOptions): (fault: string) => void {
  const [path] = url.split('?')
  return fault => {
    try {
      onError?.(new Error(`The response to ${request.method} ${path} was refused: ${fault}`))
    } catch {}
  }
}

/** The host must send the whole content, because a 304 or a part of it cannot be checked. Express sends a 304 by itself. */
const CONDITIONS = ['if-none-match', 'if-modified-since', 'range']

function hasProvenance({ request }: HostExchange, interaction: Interaction): boolean {
  return request.headers['x-provenance'] !== undefined && mayWrite(interaction)
}

type ReadableEntry = CheckedEntry & { readonly interaction: Interaction }

function requireReadable(
  entries: readonly CheckedEntry[] | Misunderstood,
): readonly ReadableEntry[] | Misunderstood {
  if (isFailure(entries)) return entries
  return mapOrFail(entries, ({ interaction, body }) =>
    isFailure(interaction) ? interaction : { interaction, body },
  )
}

type PartRules = Pick<HostOptions, 'stored' | 'versionAccess' | 'fhirBaseUrl'> & {
  readonly access: Access
  readonly work: Work
}

/** Checks what the host itself cannot enforce, by the stored content if the host provides it. */
async function checkPart(
  { interaction, body }: ReadableEntry,
  { access, fhirBaseUrl, stored, versionAccess = 'current', work }: PartRules,
): Promise<Refusal | undefined> {
  const refusal = checkHostRules(interaction, access, fhirBaseUrl, work)
  if (refusal) return refusal
  const { kind } = interaction
  // The content of the versions is checked in the response.
  if ((kind === 'vread' || kind === 'history-instance') && versionAccess === 'current') {
    const filter = access.filterFor(interaction.type, 'r')
    if (isEverything(filter)) return undefined
    if (!stored) return failFor('stored-not-provided')
    const current = await stored(interaction.type, interaction.id)
    return current && isNamed(current, interaction) && satisfies(current, filter, fhirBaseUrl)
      ? undefined
      : STORED_OUTSIDE
  }
  if (kind !== 'create' && kind !== 'update' && kind !== 'delete') return undefined
  const filter = access.filterFor(
    interaction.type,
    ({ create: 'c', update: 'u', delete: 'd' } as const)[kind],
  )
  if (isEverything(filter)) return undefined
  if (kind !== 'delete' && body === undefined) return failFor('body-not-read')
  if (kind === 'create') return undefined
  if (!stored) return failFor('stored-not-provided')
  const current = await stored(interaction.type, interaction.id)
  const within = current
    ? isNamed(current, interaction) && satisfies(current, filter, fhirBaseUrl)
    : kind === 'update'
  return within ? undefined : STORED_OUTSIDE
}

/** A host that looks resources up by their id alone may find one of another type, and would change that one. */
function isNamed(
  { resourceType, id }: Resource,
  named: { readonly type: string; readonly id: string },
): boolean {
  return resourceType === named.type && (id ?? named.id) === named.id
}

const STORED_OUTSIDE = failFor('stored-not-within')

/** Whether the host has no parser for a JSON body that the client has sent. An object without members has two characters. */
export function lacksParser({ request, body }: HostExchange): boolean {
  const { 'content-type': type = '', 'content-length': length } = request.headers
  return isUnread(body) && hasBody(request) && /\bjson\b/.test(type) && length !== '2'
}

/** Express 4 sets an empty object if no parser reads the content type; a parser of the route may read it later. */
function isUnread(body: unknown): boolean {
  return body === undefined || body === null || (isRecord(body) && Object.keys(body).length === 0)
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Reads the form of a `_search`, whatever the host's parser made of it. */
export function readForm(body: unknown): string | undefined {
  if (typeof body === 'string' || body instanceof Uint8Array) return decodeText(body)
  if (typeof body !== 'object' || body === null) return undefined
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(body))
    for (const one of Array.isArray(value) ? value : [value])
      params.append(name, typeof one === 'string' ? one : '\0')
  return params.toString()
}

/** Reads the JSON of a write or a Bundle, which the host may have parsed. Undefined if there is none. */
export function readJson(interaction: Interaction, body: unknown): unknown {
  if (!isWrite(interaction) || body === undefined || body === null) return undefined
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return body
  // The content check refuses an empty text, which is not a resource.
  return parseLimited(decodeText(body)) ?? ''
}

function isWrite({ kind }: Interaction): boolean {
  return kind === 'create' || kind === 'bundle' || kind.startsWith('update') || kind.startsWith('patch')
}

function decodeText(body: string | Uint8Array): string {
  return typeof body === 'string' ? body : Buffer.from(body).toString('utf8')
}
