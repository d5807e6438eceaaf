import { findOwn, isFailure } from '../core/index.ts'
import { isResourceType } from './definitions.ts'
import type { Interaction, Misunderstood, Params } from './interaction.ts'
import { isId, misunderstand, parsePath } from './interaction.ts'
import { getFhirWords } from './reasons/reasons.ts'
import {
  areGeneral,
  type FhirRequestParts,
  findSearchExcess,
  type Headers,
  haveCriteria,
  parseParams,
  readHeaders,
} from './request.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type Parsed = Interaction | Misunderstood

interface Call {
  readonly method: Method
  readonly params: Params
  readonly headers: Headers
  readonly form: string
  readonly baseUrl: string | undefined
}

// HEAD is handled as GET (ROUTE-2).
const METHODS: Readonly<Record<string, Method>> = {
  GET: 'GET',
  HEAD: 'GET',
  POST: 'POST',
  PUT: 'PUT',
  PATCH: 'PATCH',
  DELETE: 'DELETE',
}

const OPERATION = /^\$[a-z][a-z0-9-]*$/
const FORM = /^application\/x-www-form-urlencoded(?:\s*;\s*charset="?utf-8"?)?\s*$/i

/**
 * Identifies the interaction of a request (ROUTE-1). The server and the interceptor both use this function, so that they
 * cannot disagree.
 */
export function parseInteraction(request: FhirRequestParts): Parsed {
  const parsed = parseUnlisted(request)
  return isNotAllowed(parsed) ? { ...parsed, allow: findMethods(request) } : parsed
}

/** The methods of a URL, for `Allow` (RFC 9110, 10.2.1); none if there is no such URL. */
export function findMethods(request: Omit<FhirRequestParts, 'method'>): readonly string[] {
  const results = Object.keys(METHODS).map(method => ({
    method,
    parsed: parseUnlisted({ ...request, method }),
  }))
  const isKnown = results.some(
    ({ parsed }) => !isFailure(parsed) || getFhirWords(parsed.reason).status !== 404,
  )
  const methods = results.filter(({ parsed }) => !isNotAllowed(parsed)).map(({ method }) => method)
  return isKnown ? methods : []
}

function isNotAllowed(parsed: Parsed): parsed is Misunderstood {
  return isFailure(parsed) && getFhirWords(parsed.reason).status === 405
}

function parseUnlisted(request: FhirRequestParts): Parsed {
  const segments = parsePath(request.path)
  if (isFailure(segments)) return segments
  const method = findOwn(METHODS, request.method)
  if (!method) return misunderstand('method-unknown')
  const params = readParams(request.query, 'query')
  if (isFailure(params)) return params
  const headers = readHeaders(request.headers)
  if (headers.override || params.some(([name]) => name === '_method'))
    return misunderstand('method-overridden')
  const { baseUrl, form = '' } = request
  const call = { method, params, headers, form, baseUrl }
  if (
    headers.ifNoneExist !== undefined &&
    (method !== 'POST' || segments.length !== 1 || !isResourceType(segments[0] ?? ''))
  )
    return misunderstand('if-none-exist-unsupported')
  return route(segments, call)
}

function route(segments: readonly string[], call: Call): Parsed {
  const [first, ...rest] = segments
  if (first === undefined) return parseOnBase(call)
  if (first === 'metadata' && rest.length === 0)
    return call.method === 'GET' ? { kind: 'capabilities' } : createNotAllowed()
  if (first === '.well-known' && rest[0] === 'smart-configuration' && rest.length === 1)
    return call.method === 'GET' ? { kind: 'smart-configuration' } : createNotAllowed()
  if (rest.length === 0 && first === '_history')
    return parseHistory(call, { kind: 'history-system', params: call.params })
  if (rest.length === 0 && first === '_search')
    return parsePosted(call, params => ({ kind: 'search-system', params, posted: true }))
  if (rest.length === 0 && first.startsWith('$')) return parseOperation(call, first)
  if (!isResourceType(first)) return misunderstand('resource-type-unknown')
  return parseOnType(first, rest, call)
}

function parseOnBase(call: Call): Parsed {
  if (call.method === 'GET') return { kind: 'search-system', params: call.params }
  return call.method === 'POST' ? requireGeneralParams(call, { kind: 'bundle' }) : createNotAllowed()
}

function parseOnType(type: string, rest: readonly string[], call: Call): Parsed {
  const [second, ...below] = rest
  if (second === undefined) return parseOnWholeType(type, call)
  if (below.length === 0 && second === '_history')
    return parseHistory(call, { kind: 'history-type', type, params: call.params })
  if (below.length === 0 && second === '_search')
    return parsePosted(call, params => ({ kind: 'search-type', type, params, posted: true }))
  if (below.length === 0 && second.startsWith('$')) return parseOperation(call, second, type)
  if (!isId(second)) return misunderstand('id-malformed')
  return parseOnInstance(type, second, below, call)
}

function parseOnWholeType(type: string, call: Call): Parsed {
  const { params } = call
  switch (call.method) {
    case 'GET':
      return { kind: 'search-type', type, params }
    case 'POST':
      return parseCreate(type, call)
    case 'PUT':
      return requireCriteria({ kind: 'update-conditional', type, params })
    case 'PATCH':
      return requireCriteria({ kind: 'patch-conditional', type, params })
    case 'DELETE':
      return requireCriteria({ kind: 'delete-conditional', type, params })
  }
}

function parseOnInstance(type: string, id: string, below: readonly string[], call: Call): Parsed {
  const [third, fourth] = below
  if (third === undefined) return parseOnResource(type, id, call)
  if (third === '_history' && below.length === 1)
    return parseHistory(call, { kind: 'history-instance', type, id, params: call.params })
  if (third === '_history' && fourth !== undefined && below.length === 2)
    return parseVread(type, id, fourth, call)
  if (third.startsWith('$') && below.length === 1) return parseOperation(call, third, type, id)
  // Of R4's compartments only that of Patient is supported.
  if (type !== 'Patient') return misunderstand('url-unknown')
  return parseOnCompartment(id, below, call)
}

function parseOnResource(type: string, id: string, call: Call): Parsed {
  switch (call.method) {
    case 'GET':
      return requireGeneralParams(call, { kind: 'read', type, id, params: call.params })
    case 'PUT':
      return requireGeneralParams(call, { kind: 'update', type, id })
    case 'PATCH':
      return requireGeneralParams(call, { kind: 'patch', type, id })
    case 'DELETE':
      return requireGeneralParams(call, { kind: 'delete', type, id })
    case 'POST':
      return createNotAllowed()
  }
}

/** `Patient/1/Condition`, `Patient/1/*` and their `_search`; `Patient/1/_search` is over all types. */
function parseOnCompartment(id: string, below: readonly string[], call: Call): Parsed {
  const [third = '', fourth] = below
  const compartment = { kind: 'search-compartment', compartment: 'Patient', id } as const
  if (third === '_search' && below.length === 1)
    return parsePosted(call, params => ({ ...compartment, type: '*', params, posted: true }))
  if (third !== '*' && !isResourceType(third)) return misunderstand('resource-type-unknown')
  if (below.length === 1)
    return call.method === 'GET' ? { ...compartment, type: third, params: call.params } : createNotAllowed()
  if (fourth === '_search' && below.length === 2)
    return parsePosted(call, params => ({ ...compartment, type: third, params, posted: true }))
  return misunderstand('url-unknown')
}

function parseCreate(type: string, call: Call): Parsed {
  const { headers, baseUrl } = call
  const { ifNoneExist } = headers
  if (ifNoneExist === undefined) return requireGeneralParams(call, { kind: 'create', type })
  const excess = findSearchExcess(ifNoneExist)
  if (excess) return misunderstand(excess.reason, { part: 'If-None-Exist', most: excess.most })
  const query = readCondition(type, ifNoneExist, baseUrl)
  const criteria = query.includes('?') ? undefined : parseParams(query)
  if (!criteria || !haveCriteria(criteria)) return misunderstand('if-none-exist-malformed', { type })
  return requireGeneralParams(call, { kind: 'create', type, ifNoneExist: criteria })
}

/** The parameters of `identifier=1`, `Patient?identifier=1` and `{base}/Patient?identifier=1`; the latter are HAPI's. */
function readCondition(type: string, condition: string, baseUrl: string | undefined): string {
  const below =
    baseUrl !== undefined && condition.startsWith(`${baseUrl}/`)
      ? condition.slice(baseUrl.length + 1)
      : condition
  return below.startsWith(`${type}?`) ? below.slice(type.length + 1) : condition
}

function parseVread(type: string, id: string, version: string, call: Call): Parsed {
  if (!isId(version)) return misunderstand('version-id-malformed')
  return call.method === 'GET'
    ? requireGeneralParams(call, { kind: 'vread', type, id, version, params: call.params })
    : createNotAllowed()
}

function parseHistory(call: Call, interaction: Interaction): Parsed {
  return call.method === 'GET' ? interaction : createNotAllowed()
}

function parseOperation(call: Call, name: string, type?: string, id?: string): Parsed {
  if (!OPERATION.test(name)) return misunderstand('operation-name-malformed')
  // $validate checks the resource in the body or, by GET, the one with the id.
  const hasSubject = name !== '$validate' || id !== undefined
  const isCancellation = call.method === 'DELETE' && type === undefined
  if (call.method !== 'POST' && !isCancellation && (call.method !== 'GET' || !hasSubject))
    return createNotAllowed()
  return {
    kind: 'operation',
    name,
    params: call.params,
    ...(type !== undefined && { type }),
    ...(id !== undefined && { id }),
    ...(call.method === 'POST' && { posted: true }),
    ...(isCancellation && { cancels: true }),
  }
}

/** A search by POST: the parameters of the URL and those of the form are combined (R4 http.html#search). */
function parsePosted(call: Call, search: (params: Params) => Interaction): Parsed {
  if (call.method !== 'POST') return createNotAllowed()
  if (!FORM.test(call.headers.contentType ?? '')) return misunderstand('search-body-not-a-form')
  const form = readParams(call.form, 'form')
  if (isFailure(form)) return form
  if (form.some(([name]) => name === '_method'))
    return misunderstand('parameters-malformed', { part: 'form' })
  return search([...call.params, ...form])
}

function readParams(text: string, part: 'query' | 'form'): Params | Misunderstood {
  const excess = findSearchExcess(text)
  if (excess) return misunderstand(excess.reason, { part, most: excess.most })
  return parseParams(text) ?? misunderstand('parameters-malformed', { part })
}

function requireCriteria(interaction: Extract<Interaction, { params: Params }>): Parsed {
  return haveCriteria(interaction.params) ? interaction : misunderstand('criteria-missing')
}

// An unknown parameter may have a meaning for the upstream (`_cascade`), so it is refused.
function requireGeneralParams(call: Call, interaction: Interaction): Parsed {
  return areGeneral(call.params) ? interaction : misunderstand('parameters-unsupported')
}

function createNotAllowed(): Misunderstood {
  return misunderstand('method-not-allowed')
}
