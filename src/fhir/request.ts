import type { IncomingHttpHeaders } from 'node:http'
import type { Interaction, Params } from './interaction.ts'
import { SEARCH_CHARACTERS, SEARCH_VALUES } from './limits.ts'

/** The parts of an HTTP request that determine its interaction. */
export interface FhirRequestParts {
  readonly method: string
  /** The FHIR base URL, without a trailing slash, if known: If-None-Exist may contain it. */
  readonly baseUrl?: string | undefined
  /** Raw, below the FHIR base: empty or with a leading slash. */
  readonly path: string
  /** Raw, without the question mark. */
  readonly query: string
  /** Names in any case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The raw `application/x-www-form-urlencoded` body of a `_search`. */
  readonly form?: string | undefined
}

/** The conditions of an interaction on the version of a resource (R4 http.html#cread, #concurrency). */
export interface Preconditions {
  readonly ifMatch?: string | undefined
  readonly ifNoneMatch?: string | undefined
  readonly ifModifiedSince?: string | undefined
}

/** The headers that change the meaning of a request. */
export interface Headers {
  readonly override: boolean
  readonly contentType: string | undefined
  readonly ifNoneExist: string | undefined
}

const OVERRIDES = new Set(['x-http-method-override', 'x-http-method', 'x-method-override'])

export function readHeaders(headers: FhirRequestParts['headers']): Headers {
  let override = false
  let contentType: string | undefined
  let ifNoneExist: string | undefined
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value === undefined) continue
    const known = name.toLowerCase()
    if (OVERRIDES.has(known)) override = true
    // A header that is sent twice is a list, which no rule accepts.
    else if (known === 'content-type') contentType = String(value)
    else if (known === 'if-none-exist') ifNoneExist = Array.isArray(value) ? '' : String(value)
  }
  return { override, contentType, ifNoneExist }
}

/** A media type without its parameters, in lower case. */
export function parseMediaType(text: string): string {
  return (text.split(';')[0] ?? '').trim().toLowerCase()
}

/**
 * The Authorization header of a request, from Node's `rawHeaders`. Node keeps the first of several and drops the
 * others. Here they are joined, which is not a valid bearer token, so that no second token goes unnoticed.
 */
export function getAuthorizationHeader(rawHeaders: readonly string[]): string | undefined {
  let found: string | undefined
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    // Lengths are compared first, because this runs for every header of every request.
    if (name.length === NAME.length && name.toLowerCase() === NAME)
      found = found === undefined ? rawHeaders[at + 1] : `${found}, ${rawHeaders[at + 1]}`
  }
  return found
}

const NAME = 'authorization'

/** `Prefer` (R4 http.html#ops). */
export interface Preferences {
  readonly answer: 'representation' | 'minimal' | 'OperationOutcome'
  /** Unknown search parameters are ignored. */
  readonly lenient: boolean
  /** The response may come later, from another URL (R4 async.html). */
  readonly respondAsync?: true
  /** `Cache-Control`, for an upstream that caches searches. */
  readonly cacheControl?: string
  /** The caller wants the content of a Binary instead of the resource (`wantsContent`). */
  readonly content?: true
}

const NONE: Preferences = { answer: 'representation', lenient: false }

const ANSWERS = ['minimal', 'representation', 'OperationOutcome'] as const

const JSON_FORMATS = new Set([
  'json',
  'application/json',
  'application/fhir+json',
  'text/json',
  '*/*',
  'application/*',
])

/** The file of an export may be asked for as what it is (Bulk Data Access 3.0.0, Output File Request). */
const FILE_FORMATS = new Set([...JSON_FORMATS, 'application/fhir+ndjson', 'application/ndjson', 'ndjson'])

// RFC 9111, 5.2: directives, some with a number.
const CACHE_CONTROL = /^[a-z-]+(?:=\d{1,10})?(?:, ?[a-z-]+(?:=\d{1,10})?){0,9}$/i

/** `Prefer: return=minimal, handling=lenient` (RFC 7240, R4 http.html#ops) and `Cache-Control`. Unknown preferences are ignored. */
export function readPreferences(headers: IncomingHttpHeaders): Preferences {
  const cacheControl = headers['cache-control']
  if (cacheControl === undefined || !CACHE_CONTROL.test(cacheControl)) return readPrefer(headers)
  return { ...readPrefer(headers), cacheControl }
}

function readPrefer(headers: IncomingHttpHeaders): Preferences {
  if (headers.prefer === undefined) return NONE
  const preferred = String(headers.prefer)
    .split(/[,;]/)
    .map(it => it.trim())
  return {
    answer: ANSWERS.find(it => preferred.includes(`return=${it}`)) ?? 'representation',
    lenient: preferred.includes('handling=lenient'),
    ...(preferred.includes('respond-async') && { respondAsync: true }),
  }
}

export function readPreconditions(headers: IncomingHttpHeaders): Preconditions {
  return {
    ifMatch: headers['if-match'],
    ifNoneMatch: headers['if-none-match'],
    ifModifiedSince: headers['if-modified-since'],
  }
}

/**
 * Whether the caller accepts JSON, by `_format` or else by Accept (R4 http.html#parameters). The SMART configuration is
 * always JSON (SMART 2.2, conformance).
 */
export function acceptsJson(headers: IncomingHttpHeaders, interaction: Interaction): boolean {
  if (interaction.kind === 'smart-configuration') return true
  const params: Params = 'params' in interaction ? interaction.params : []
  const format = params.findLast(([name]) => name === '_format')?.[1]
  // A plus sign that was not percent-encoded is decoded as a space.
  const isFile = interaction.kind === 'operation' && interaction.name === '$export-file'
  const formats = isFile ? FILE_FORMATS : JSON_FORMATS
  if (format !== undefined) return formats.has(parseMediaType(format).replace(' ', '+'))
  const accepted = headers.accept
  return !accepted || accepted.split(',').some(it => formats.has(parseMediaType(it)))
}

// Parameters that format a response and select nothing (R4 http.html#parameters, search.html#modifyingresults).
const GENERAL = new Set(['_format', '_pretty', '_summary', '_elements'])
const RESULT = new Set([
  ...GENERAL,
  '_sort',
  '_count',
  '_include',
  '_revinclude',
  '_include:iterate',
  '_revinclude:iterate',
  '_include:recurse',
  '_revinclude:recurse',
  '_total',
  '_contained',
  '_containedType',
])

/** Why a query or a form is too long; undefined if it is not. */
export function findSearchExcess(text: string) {
  if (text.length > SEARCH_CHARACTERS)
    return { reason: 'parameters-too-long', most: SEARCH_CHARACTERS } as const
  const separators = text.match(/[&,]|%2c/gi)?.length ?? 0
  return separators >= SEARCH_VALUES
    ? ({ reason: 'parameters-too-many', most: SEARCH_VALUES } as const)
    : undefined
}

/** The parameters of a query or a form (`application/x-www-form-urlencoded`); undefined if it is malformed or too long. */
export function parseParams(text: string): Params | undefined {
  if (findSearchExcess(text)) return undefined
  const params: [string, string][] = []
  for (const part of text.split('&')) {
    if (part === '') continue
    const at = part.indexOf('=')
    const name = decode(at < 0 ? part : part.slice(0, at))
    const value = decode(at < 0 ? '' : part.slice(at + 1))
    if (!name || value === undefined) return undefined
    params.push([name, value])
  }
  return params
}

/** Whether every parameter only formats the response to an interaction on one resource. */
export function areGeneral(params: Params): boolean {
  return params.every(([name]) => GENERAL.has(name))
}

/** Whether a parameter selects resources, as every conditional interaction requires. */
export function haveCriteria(params: Params): boolean {
  return params.some(([name, value]) => !RESULT.has(name) && value !== '')
}

function decode(text: string): string | undefined {
  try {
    const decoded = decodeURIComponent(text.replaceAll('+', ' '))
    // Half of a surrogate pair, which only the JSON of a Bundle can contain, cannot be encoded in a URL.
    return decoded.includes('\0') || !decoded.isWellFormed() ? undefined : decoded
  } catch {
    return undefined
  }
}

type Paged = Extract<Interaction, { readonly params: Params }>

// `acceptsJson` reads these.
const FORMAT: ReadonlySet<string> = new Set(['_format', '_pretty'])

/**
 * The parameters of a further page: those of the first request, with `_count` and `_total` as the client may have added
 * them to the link. Undefined if it added any other parameter.
 */
export function readPageParams(
  { kind, params }: Paged,
  pageParameter: string,
  first: Params,
): Params | undefined {
  const added = params.filter(([name]) => name !== pageParameter)
  if (params.length - added.length !== 1) return undefined
  if (!added.every(([name]) => FORMAT.has(name) || name === '_count' || name === '_total')) return undefined
  // Only searches have a total.
  const replaced = added.filter(
    ([name]) => name === '_count' || (name === '_total' && kind.startsWith('search-')),
  )
  const names = new Set(replaced.map(([name]) => name))
  return [...first.filter(([name]) => !names.has(name)), ...replaced]
}
