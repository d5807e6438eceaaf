import { isResourceType } from './definitions.ts'
import type { Interaction, Misunderstood, Params } from './interaction.ts'
import { areGeneral, findSearchExcess, haveCriteria, parseParams } from './params.ts'
import { type FhirRequest, type Headers, readHeaders } from './request.ts'
import { createMisunderstood, isId, parsePath } from './request-path.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type Answer = Interaction | Misunderstood

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
export function parseInteraction(request: FhirRequest): Answer {
  const answer = parse(request)
  return isNotAllowed(answer) ? { ...answer, allow: findMethods(request) } : answer
}

/** The methods of an address, for `Allow` (RFC 9110, 10.2.1); none where there is no such address. */
export function findMethods(request: Omit<FhirRequest, 'method'>): readonly string[] {
  const answers = Object.keys(METHODS).map(method => ({ method, answer: parse({ ...request, method }) }))
  const isKnown = answers.some(({ answer }) => !(answer.kind === 'misunderstood' && answer.status === 404))
  const methods = answers.filter(({ answer }) => !isNotAllowed(answer)).map(({ method }) => method)
  return isKnown ? methods : []
}

function isNotAllowed(answer: Answer): answer is Misunderstood {
  return answer.kind === 'misunderstood' && answer.status === 405
}

function parse(request: FhirRequest): Answer {
  const segments = parsePath(request.path)
  if ('kind' in segments) return segments
  const method = Object.hasOwn(METHODS, request.method) ? METHODS[request.method] : undefined
  if (!method)
    return createMisunderstood(
      405,
      'Cannot answer this method: FHIR uses GET, HEAD, POST, PUT, PATCH and DELETE',
    )
  const params = readParams(request.query, 'query')
  if ('kind' in params) return params
  const headers = readHeaders(request.headers)
  if (headers.override || params.some(([name]) => name === '_method'))
    return createMisunderstood(400, 'Cannot accept a method override: send the method itself')
  const { baseUrl, form = '' } = request
  const call = { method, params, headers, form, baseUrl }
  if (
    headers.ifNoneExist !== undefined &&
    (method !== 'POST' || segments.length !== 1 || !isResourceType(segments[0] ?? ''))
  )
    return createMisunderstood(400, 'Cannot accept If-None-Exist: it belongs to a create')
  return route(segments, call)
}

function route(segments: readonly string[], call: Call): Answer {
  const [first, ...rest] = segments
  if (first === undefined) return onBase(call)
  if (first === 'metadata' && rest.length === 0)
    return call.method === 'GET' ? { kind: 'capabilities' } : createNotAllowed()
  if (first === '.well-known' && rest[0] === 'smart-configuration' && rest.length === 1)
    return call.method === 'GET' ? { kind: 'smart-configuration' } : createNotAllowed()
  if (rest.length === 0 && first === '_history')
    return history(call, { kind: 'history-system', params: call.params })
  if (rest.length === 0 && first === '_search')
    return posted(call, params => ({ kind: 'search-system', params, posted: true }))
  if (rest.length === 0 && first.startsWith('$')) return operation(call, first)
  if (!isResourceType(first)) return createMisunderstood(404, 'Cannot find this resource type in FHIR R4')
  return onType(first, rest, call)
}

function onBase(call: Call): Answer {
  if (call.method === 'GET') return { kind: 'search-system', params: call.params }
  return call.method === 'POST' ? onOne(call, { kind: 'bundle' }) : createNotAllowed()
}

function onType(type: string, rest: readonly string[], call: Call): Answer {
  const [second, ...below] = rest
  if (second === undefined) return onWholeType(type, call)
  if (below.length === 0 && second === '_history')
    return history(call, { kind: 'history-type', type, params: call.params })
  if (below.length === 0 && second === '_search')
    return posted(call, params => ({ kind: 'search-type', type, params, posted: true }))
  if (below.length === 0 && second.startsWith('$')) return operation(call, second, type)
  if (!isId(second))
    return createMisunderstood(
      400,
      'Cannot read id: FHIR ids have 1 to 64 permissions, digits, dots and hyphens',
    )
  return onInstance(type, second, below, call)
}

function onWholeType(type: string, call: Call): Answer {
  const { params } = call
  switch (call.method) {
    case 'GET':
      return { kind: 'search-type', type, params }
    case 'POST':
      return create(type, call)
    case 'PUT':
      return conditional({ kind: 'update-conditional', type, params })
    case 'PATCH':
      return conditional({ kind: 'patch-conditional', type, params })
    case 'DELETE':
      return conditional({ kind: 'delete-conditional', type, params })
  }
}

function onInstance(type: string, id: string, below: readonly string[], call: Call): Answer {
  const [third, fourth] = below
  if (third === undefined) return onResource(type, id, call)
  if (third === '_history' && below.length === 1)
    return history(call, { kind: 'history-instance', type, id, params: call.params })
  if (third === '_history' && fourth !== undefined && below.length === 2) return vread(type, id, fourth, call)
  if (third.startsWith('$') && below.length === 1) return operation(call, third, type, id)
  // Patient is the one compartment whose members are known here (R4 CompartmentDefinition/patient).
  if (type !== 'Patient') return createMisunderstood(404, 'Cannot find this address on the FHIR server')
  return onCompartment(id, below, call)
}

function onResource(type: string, id: string, call: Call): Answer {
  switch (call.method) {
    case 'GET':
      return onOne(call, { kind: 'read', type, id, params: call.params })
    case 'PUT':
      return onOne(call, { kind: 'update', type, id })
    case 'PATCH':
      return onOne(call, { kind: 'patch', type, id })
    case 'DELETE':
      return onOne(call, { kind: 'delete', type, id })
    case 'POST':
      return createNotAllowed()
  }
}

/** `Patient/1/Condition`, `Patient/1/*` and their `_search`; `Patient/1/_search` is over all types. */
function onCompartment(id: string, below: readonly string[], call: Call): Answer {
  const [third = '', fourth] = below
  const compartment = { kind: 'search-compartment', compartment: 'Patient', id } as const
  if (third === '_search' && below.length === 1)
    return posted(call, params => ({ ...compartment, type: '*', params, posted: true }))
  if (third !== '*' && !isResourceType(third))
    return createMisunderstood(404, 'Cannot find this resource type in FHIR R4')
  if (below.length === 1)
    return call.method === 'GET' ? { ...compartment, type: third, params: call.params } : createNotAllowed()
  if (fourth === '_search' && below.length === 2)
    return posted(call, params => ({ ...compartment, type: third, params, posted: true }))
  return createMisunderstood(404, 'Cannot find this address on the FHIR server')
}

function create(type: string, call: Call): Answer {
  const { headers, baseUrl } = call
  const { ifNoneExist } = headers
  if (ifNoneExist === undefined) return onOne(call, { kind: 'create', type })
  const excess = findSearchExcess(ifNoneExist)
  if (excess) return createTooLong('If-None-Exist', excess)
  const query = conditionOn(type, ifNoneExist, baseUrl)
  const criteria = query.includes('?') ? undefined : parseParams(query)
  if (!criteria || !haveCriteria(criteria))
    return createMisunderstood(
      400,
      `Cannot read If-None-Exist: expected search parameters, alone or after ${type}? of this FHIR server`,
    )
  return onOne(call, { kind: 'create', type, ifNoneExist: criteria })
}

/** The parameters of `identifier=1`, `Patient?identifier=1` and `{base}/Patient?identifier=1`; the latter are HAPI's. */
function conditionOn(type: string, condition: string, baseUrl: string | undefined): string {
  const below =
    baseUrl !== undefined && condition.startsWith(`${baseUrl}/`)
      ? condition.slice(baseUrl.length + 1)
      : condition
  return below.startsWith(`${type}?`) ? below.slice(type.length + 1) : condition
}

function vread(type: string, id: string, version: string, call: Call): Answer {
  if (!isId(version)) return createMisunderstood(400, 'Cannot read version id')
  return call.method === 'GET'
    ? onOne(call, { kind: 'vread', type, id, version, params: call.params })
    : createNotAllowed()
}

function history(call: Call, interaction: Interaction): Answer {
  return call.method === 'GET' ? interaction : createNotAllowed()
}

function operation(call: Call, name: string, type?: string, id?: string): Answer {
  if (!OPERATION.test(name)) return createMisunderstood(400, 'Cannot read operation name')
  // What is validated is sent, and never what is stored.
  if (call.method !== 'POST' && (call.method !== 'GET' || name === '$validate')) return createNotAllowed()
  return {
    kind: 'operation',
    name,
    params: call.params,
    ...(type !== undefined && { type }),
    ...(id !== undefined && { id }),
    ...(call.method === 'POST' && { posted: true }),
  }
}

/** A search by POST: the parameters of the address and those of the form combine (R4 http.html#search). */
function posted(call: Call, search: (params: Params) => Interaction): Answer {
  if (call.method !== 'POST') return createNotAllowed()
  if (!FORM.test(call.headers.contentType ?? ''))
    return createMisunderstood(415, 'Cannot search: the body of _search is application/x-www-form-urlencoded')
  const form = readParams(call.form, 'form')
  if ('kind' in form) return form
  if (form.some(([name]) => name === '_method'))
    return createMisunderstood(400, 'Cannot read form: it is malformed')
  return search([...call.params, ...form])
}

function readParams(text: string, what: 'query' | 'form'): Params | Misunderstood {
  const excess = findSearchExcess(text)
  if (excess) return createTooLong(what, excess)
  return parseParams(text) ?? createMisunderstood(400, `Cannot read ${what}: it is malformed`)
}

function createTooLong(what: string, excess: string): Misunderstood {
  return { ...createMisunderstood(400, `Cannot read ${what}: ${excess}`), isExcess: true }
}

function conditional(interaction: Extract<Interaction, { params: Params }>): Answer {
  return haveCriteria(interaction.params)
    ? interaction
    : createMisunderstood(400, 'Cannot do this on a whole type: an id or search parameters are needed')
}

// A parameter that is ignored here may mean something to the server behind (`_cascade`): not understood, so refused.
function onOne(call: Call, interaction: Interaction): Answer {
  return areGeneral(call.params)
    ? interaction
    : createMisunderstood(
        400,
        'Cannot accept these parameters: this interaction knows _format, _pretty, _summary and _elements',
      )
}

function createNotAllowed(): Misunderstood {
  return createMisunderstood(405, 'Cannot answer this method at this address')
}
