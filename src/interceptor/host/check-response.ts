import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { isRecord, toRecord } from '../../core/index.ts'
import {
  createOutcome,
  failFor,
  type Interaction,
  isId,
  isResource,
  isResourceType,
  parseLimited,
  type Refused,
  type Resource,
} from '../../fhir/index.ts'
import { type Access, type AccessFilter, satisfies, seesAll } from '../../smart/index.ts'
import { refuse } from '../refuse.ts'
import { decodeContent } from './decode-content.ts'

interface HostResponse {
  readonly status: number
  readonly body: Buffer
}

/** Send the response as it is, without its body, with another body, or a refusal instead. */
type ResponseVerdict = 'release' | 'empty' | Rewritten | Refused

interface Rewritten {
  readonly allowed: true
  readonly body: string
  /** As in `Refused`. */
  readonly found?: string | undefined
}

// These statuses reveal whether a resource exists, which a caller must not learn about resources outside the grant.
const REVEALING_STATUSES: ReadonlySet<number> = new Set([304, 404, 410])

/**
 * Creates the check of the host's response, or returns undefined if the grant covers everything that it can contain.
 * `entries` are the interactions of a Bundle, in their order.
 */
export function createResponseCheck(
  interaction: Interaction,
  entries: readonly Interaction[],
  access: Access,
  baseUrl: string,
): ((response: HostResponse) => ResponseVerdict) | undefined {
  if (seesAll(access)) return undefined
  if (readsWholeType(interaction, access))
    return response => checkFound(response, interaction, access, baseUrl)
  return response => {
    if (response.status >= 300) return checkFailure(response)
    if (interaction.kind === 'bundle')
      return checkEntries(parseLimited(response.body.toString('utf8')), entries, access, baseUrl)
    const rule = chooseResponseRule(interaction, access)
    if (response.body.length === 0) return rule.written ? 'release' : refuseFound(UNREADABLE)
    const outside = findOutside(parseLimited(response.body.toString('utf8')), rule, baseUrl)
    if (!outside) return 'release'
    return rule.written ? 'empty' : refuseFound(describeOutside(outside, interaction))
  }
}

/** Whether it is a read of a type that the grant covers completely. */
export function readsWholeType(interaction: Interaction, access: Access): boolean {
  return isRead(interaction) && access.filterFor(interaction.type, 'r') === 'everything'
}

type Read = Extract<Interaction, { readonly kind: 'read' | 'vread' | 'history-instance' }>

function isRead(interaction: Interaction): interaction is Read {
  const { kind } = interaction
  return kind === 'read' || kind === 'vread' || kind === 'history-instance'
}

/**
 * A host may look a resource up by its id alone, and find one of another type than that of the URL. Only JSON can be checked;
 * the content of a Binary may be JSON of any kind.
 */
function checkFound(
  { status, body }: HostResponse,
  interaction: Interaction,
  access: Access,
  baseUrl: string,
): ResponseVerdict {
  const isContent = 'type' in interaction && interaction.type === 'Binary'
  const text = body.toString('utf8')
  if (status >= 300 || isContent || !/^\s*\{/.test(text)) return 'release'
  const outside = findOutside(parseLimited(text), chooseResponseRule(interaction, access), baseUrl)
  return outside ? refuseFound(describeOutside(outside, interaction)) : 'release'
}

/** Only the host learns what its response contained. */
function refuseFound(found: string | undefined): Refused {
  return { ...refuse(failFor('response-not-within')), ...(found !== undefined && { found }) }
}

const UNREADABLE = 'The response was not a FHIR resource in JSON'

/**
 * Describes what a host that limits its searches correctly does not send. Undefined for the resource that the request
 * itself names: it may belong to another patient, and the audit trail must not reveal that it exists.
 */
function describeOutside(outside: Outside, interaction: Interaction): string | undefined {
  if (outside === 'unreadable') return UNREADABLE
  const { resourceType, id } = outside
  if (isRead(interaction) && interaction.type === resourceType && (id ?? interaction.id) === interaction.id)
    return undefined
  const name = isResourceType(resourceType) ? resourceType : 'a resource of an unknown type'
  return `The response contained ${id !== undefined && isId(id) ? `${name}/${id}` : name}, which is not within the grant`
}

/**
 * R4 http.html#transaction-response: the response has one entry per request, in the same order. What the caller may not see
 * is replaced in its entry, because the host has already performed the others.
 */
function checkEntries(
  body: unknown,
  interactions: readonly Interaction[],
  access: Access,
  baseUrl: string,
): ResponseVerdict {
  const entries: unknown = isResource(body) && body.resourceType === 'Bundle' ? (body.entry ?? []) : undefined
  if (!Array.isArray(entries) || entries.length !== interactions.length)
    return refuseFound('The response was not a Bundle with one entry for each request')
  const released = interactions.map((interaction, at) =>
    releaseEntry(entries[at], interaction, chooseResponseRule(interaction, access), baseUrl),
  )
  if (released.every(({ entry }, at) => entry === entries[at])) return 'release'
  return {
    allowed: true,
    body: JSON.stringify({ ...Object(body), entry: released.map(({ entry }) => entry) }),
    found: released.find(({ found }) => found !== undefined)?.found,
  }
}

interface ReleasedEntry {
  readonly entry: unknown
  readonly found?: string | undefined
}

function releaseEntry(
  entry: unknown,
  interaction: Interaction,
  rule: ResponseRule,
  baseUrl: string,
): ReleasedEntry {
  if (!isRecord(entry)) return { entry: REFUSED_ENTRY, found: UNREADABLE }
  if (!rule.written && revealsAbsence(entry.response)) return { entry: REFUSED_ENTRY }
  const outside = entry.resource === undefined ? undefined : findOutside(entry.resource, rule, baseUrl)
  if (!outside) return { entry }
  if (!rule.written) return { entry: REFUSED_ENTRY, found: describeOutside(outside, interaction) }
  // The write is done: the caller learns that, but not the content.
  const { etag: _, ...response } = toRecord(entry.response)
  return { entry: { response } }
}

const REFUSED_ENTRY = {
  response: { status: '403 Forbidden', outcome: refuse(failFor('response-not-within')).outcome },
}

function revealsAbsence(response: unknown): boolean {
  return isRecord(response) && REVEALING_STATUSES.has(Number.parseInt(String(response.status), 10))
}

function checkFailure(response: HostResponse): ResponseVerdict {
  if (REVEALING_STATUSES.has(response.status)) return refuse(failFor('response-not-within'))
  const body = parseLimited(response.body.toString('utf8'))
  if (isResource(body) && body.resourceType === 'OperationOutcome') return 'release'
  const text = 'The FHIR server could not process the request.'
  return { allowed: false, status: response.status, headers: {}, outcome: createOutcome('processing', text) }
}

/** What the response to an interaction may contain. */
interface ResponseRule {
  readonly filter: (type: string) => AccessFilter
  /** Whether it may be a Bundle of resources. */
  readonly many: boolean
  /** Whether it is the response to a write, which is done even if its content may not be shown. */
  readonly written: boolean
}

/** Chooses the permission that the resources in a response need. The response to a write needs `r`. */
export function chooseResponseRule(interaction: Interaction, access: Access): ResponseRule {
  const filterBy = (permission: 'r' | 's') => (type: string) => access.filterFor(type, permission)
  switch (interaction.kind) {
    case 'capabilities':
    case 'smart-configuration':
    case 'read':
    case 'vread':
      return { filter: filterBy('r'), many: false, written: false }
    case 'history-instance':
      return { filter: filterBy('r'), many: true, written: false }
    case 'history-type':
    case 'history-system':
    case 'search-type':
    case 'search-system':
    case 'search-compartment':
    case 'operation':
    case 'bundle':
      return { filter: filterBy('s'), many: true, written: false }
    case 'create':
    case 'update':
    case 'update-conditional':
    case 'patch':
    case 'patch-conditional':
    case 'delete':
    case 'delete-conditional':
      return { filter: filterBy('r'), many: false, written: true }
  }
}

/** A resource that may not be released, or content that cannot be read. */
type Outside = Resource | 'unreadable'

/** Finds the first part of a response that may not be released. */
export function findOutside(body: unknown, rule: ResponseRule, baseUrl: string): Outside | undefined {
  if (!isResource(body)) return 'unreadable'
  if (!rule.many || body.resourceType !== 'Bundle') return isWithin(body, rule, baseUrl) ? undefined : body
  const entries: unknown = body.entry ?? []
  if (!Array.isArray(entries)) return 'unreadable'
  for (const entry of entries) {
    const resource: unknown = isRecord(entry) ? entry.resource : null
    // The entry of a deletion in a history has no resource.
    if (resource === undefined) continue
    if (!isResource(resource)) return 'unreadable'
    if (!isWithin(resource, rule, baseUrl)) return resource
  }
  return undefined
}

function isWithin(resource: Resource, { filter }: ResponseRule, baseUrl: string): boolean {
  return (
    resource.resourceType === 'OperationOutcome' ||
    satisfies(resource, filter(resource.resourceType), baseUrl)
  )
}

/**
 * Holds back everything that a host writes to a response until it is complete, checks it, and then releases it. It works
 * with every framework, because all of them call `writeHead`, `write` and `end`.
 */
export function holdResponse(
  response: ServerResponse,
  check: (held: HostResponse) => ResponseVerdict,
  onError: (error: unknown) => void = () => {},
): void {
  const { writeHead, write, end, flushHeaders } = response
  const chunks: Buffer[] = []
  const collect = (chunk: unknown, encoding: unknown) => {
    if (typeof chunk === 'string')
      chunks.push(Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8'))
    else if (chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk))
  }
  const release = (): ServerResponse => {
    Object.assign(response, { writeHead, write, end, flushHeaders })
    const body = Buffer.concat(chunks)
    const verdict = checkSafely(
      () =>
        check({
          status: response.statusCode,
          body: decodeContent(body, response.getHeader('content-encoding')),
        }),
      onError,
    )
    if (verdict === 'release') return response.end(body)
    if (verdict !== 'empty' && !verdict.allowed) return sendRefusal(response, verdict)
    for (const name of ['content-length', 'content-encoding', 'etag']) response.removeHeader(name)
    if (verdict !== 'empty') return response.end(verdict.body)
    response.removeHeader('content-type')
    return response.end()
  }
  Object.assign(response, {
    flushHeaders: () => undefined,
    writeHead(status: number, ...rest: unknown[]) {
      response.statusCode = status
      setHeaders(response, rest.at(-1))
      return response
    },
    write(chunk: unknown, encoding?: unknown, done?: unknown) {
      collect(chunk, encoding)
      runCallback(encoding, done)
      return true
    },
    end(chunk?: unknown, encoding?: unknown, done?: unknown) {
      collect(chunk, encoding)
      const ended = release()
      runCallback(chunk, encoding, done)
      return ended
    },
  })
}

/**
 * Sends only the CORS headers of the host's response to a preflight, which has no token: a handler for all methods would send
 * a resource, and its status would reveal whether the resource exists.
 */
export function holdPreflight(response: ServerResponse): void {
  holdResponse(response, () => {
    dropHeaders(response)
    response.statusCode = 204
    response.statusMessage = ''
    return 'empty'
  })
}

function checkSafely(check: () => ResponseVerdict, onError: (error: unknown) => void): ResponseVerdict {
  try {
    return check()
  } catch (error) {
    onError(error)
    return refuse(failFor('broken'))
  }
}

// `writeHead` accepts an object, a list of pairs, or a flat list.
function setHeaders(response: ServerResponse, headers: unknown): void {
  if (Array.isArray(headers)) {
    const flat: unknown[] = headers.flat()
    for (let at = 0; at + 1 < flat.length; at += 2)
      response.appendHeader(String(flat[at]), String(flat[at + 1]))
  } else if (typeof headers === 'object' && headers !== null) {
    for (const [name, value] of Object.entries(headers as OutgoingHttpHeaders))
      if (value !== undefined) response.setHeader(name, value)
  }
}

function runCallback(...candidates: readonly unknown[]): void {
  const done = candidates.find(it => typeof it === 'function')
  if (done) process.nextTick(done)
}

// Headers that the host sets for every response. All others describe the response that is not sent.
const KEPT_HEADERS =
  /^(?:access-control-.*|vary|x-request-id|strict-transport-security|x-content-type-options)$/

function dropHeaders(response: ServerResponse): void {
  for (const name of response.getHeaderNames()) if (!KEPT_HEADERS.test(name)) response.removeHeader(name)
}

/** Sends a refusal instead of the response that the host has prepared. */
export function sendRefusal(response: ServerResponse, refused: Refused): ServerResponse {
  dropHeaders(response)
  const body = Buffer.from(JSON.stringify(refused.outcome))
  response.statusCode = refused.status
  response.statusMessage = ''
  for (const [name, value] of Object.entries(refused.headers)) response.setHeader(name, value)
  response.setHeader('content-type', 'application/fhir+json; charset=utf-8')
  response.setHeader('content-length', body.length)
  response.setHeader('cache-control', 'no-store')
  return response.end(body)
}
