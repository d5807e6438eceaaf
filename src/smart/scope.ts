import type { Permission } from '../fhir/index.ts'

/** The beginning of a scope: whose data it covers. */
export type ScopeContext = 'patient' | 'user' | 'system'

/** A scope on FHIR resources, parsed. `type` keeps the case it was written in. */
export interface ResourceScope {
  readonly kind: 'resource'
  /** The scope as it was written. */
  readonly text: string
  readonly context: ScopeContext
  /** A resource type, or `*`. */
  readonly type: string
  readonly permissions: ReadonlySet<Permission>
  /** Granular restriction: search parameters that must all match (`?category=…&status=…`). */
  readonly query: readonly (readonly [name: string, value: string])[]
  /** Written as SMART v1 (`read`, `write`, `*`). */
  readonly v1: boolean
}

/** Any other scope of our grammar: `launch`, `launch/patient`, `openid`, `fhirUser`, `online_access`, … */
export interface PlainScope {
  readonly kind: 'plain'
  readonly text: string
}

export type Scope = ResourceScope | PlainScope

const V1_PERMISSIONS: Readonly<Record<string, string>> = { read: 'rs', write: 'cud', '*': 'cruds' }

// SCOPE-2: anchored, permissions in order and not empty, v1 words without a query.
const RESOURCE_SCOPE =
  /^(patient|user|system)\/(\*|[A-Za-z]+)\.(?:(read|write|\*)|(?=[cruds])(c?r?u?d?s?)(?:\?([^?]+))?)$/

// RFC 6749, 3.3: scope-token = 1*( %x21 / %x23-5B / %x5D-7E )
const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/

const PLAIN_SCOPE =
  /^(?:openid|fhirUser|profile|online_access|offline_access|launch(?:\/[a-z]+(?:\?role=[^\s]+)?)?|__[\w.-]+|https?:\/\/\S+)$/

// A few scopes are parsed again and again, and a scope never changes.
const REMEMBERED = 1000

const known = new Map<string, Scope>()

/** Undefined for a text outside the grammar, which permits nothing. */
export function parseScope(text: string): Scope | undefined {
  const found = known.get(text)
  if (found !== undefined) return found
  const scope = parseText(text)
  if (scope === undefined) return undefined
  if (known.size >= REMEMBERED) known.clear()
  known.set(text, scope)
  return scope
}

function parseText(text: string): Scope | undefined {
  if (!SCOPE_TOKEN.test(text)) return undefined
  const match = RESOURCE_SCOPE.exec(text)
  if (match) {
    const [, context, type, v1, v2, query] = match
    const pairs = parseScopeQuery(query)
    if (pairs === undefined) return undefined
    return {
      kind: 'resource',
      text,
      context: context as ScopeContext,
      type: type as string,
      permissions: new Set((v1 === undefined ? v2 : V1_PERMISSIONS[v1]) as Iterable<Permission>),
      query: pairs,
      v1: v1 !== undefined,
    }
  }
  return PLAIN_SCOPE.test(text) ? { kind: 'plain', text } : undefined
}

/** Every scope of a `scope` claim: a string split on spaces, or an array of strings (BEARER-11). */
export function parseScopes(claim: unknown): readonly Scope[] {
  const texts =
    typeof claim === 'string'
      ? claim.split(' ')
      : Array.isArray(claim)
        ? claim.filter(item => typeof item === 'string')
        : []
  const scopes = new Map<string, Scope>()
  for (const text of texts) {
    const scope = parseScope(text)
    if (scope) scopes.set(text, scope)
  }
  return [...scopes.values()]
}

/** Whether the scope covers the type, without regard to case, and has the permission (SCOPE-5). */
export function permits(scope: Scope, type: string, permission: Permission): scope is ResourceScope {
  return (
    scope.kind === 'resource' &&
    scope.permissions.has(permission) &&
    (scope.type === '*' || isSameType(scope.type, type))
  )
}

function isSameType(a: string, b: string): boolean {
  return a.length === b.length && a.toLowerCase() === b.toLowerCase()
}

function parseScopeQuery(query: string | undefined): ResourceScope['query'] | undefined {
  if (query === undefined) return []
  const parts = query.split('&')
  if (parts.length > MAX_SCOPE_PARAMETERS) return undefined
  const pairs: [string, string][] = []
  for (const part of parts) {
    const at = part.indexOf('=')
    if (at < 1 || at === part.length - 1) return undefined
    try {
      pairs.push([decodeURIComponent(part.slice(0, at)), decodeURIComponent(part.slice(at + 1))])
    } catch {
      return undefined
    }
  }
  return pairs
}

/** The most scopes of one request, and of one registered client. */
export const MAX_SCOPES = 100

/** The longest list of scopes, in characters. An access token with such a list still fits into a header. */
export const MAX_SCOPE_LIST_CHARACTERS = 8_000

/** The most search parameters of a granular scope. A longer one is outside the grammar and permits nothing. */
export const MAX_SCOPE_PARAMETERS = 6

/**
 * The most search parameters of all granular scopes with several parameters. Scopes with one parameter are merged into one
 * condition; each of these is a condition of its own for every resource.
 */
export const MAX_COMBINED_PARAMETERS = 50

/** The limit that a list of scopes exceeds. */
export interface ScopeListFault {
  readonly reason:
    | 'scope-list-too-long'
    | 'scopes-too-many'
    | 'scope-parameters-too-many'
    | 'scope-combined-too-many'
  readonly most: number
}

export function findScopeListFault(list: string): ScopeListFault | undefined {
  if (list.length > MAX_SCOPE_LIST_CHARACTERS)
    return { reason: 'scope-list-too-long', most: MAX_SCOPE_LIST_CHARACTERS }
  const texts = list.split(' ').filter(text => text !== '')
  if (texts.length > MAX_SCOPES) return { reason: 'scopes-too-many', most: MAX_SCOPES }
  if (texts.some(text => countParameters(text) > MAX_SCOPE_PARAMETERS))
    return { reason: 'scope-parameters-too-many', most: MAX_SCOPE_PARAMETERS }
  return hasTooManyCombined(texts.map(countParameters))
    ? { reason: 'scope-combined-too-many', most: MAX_COMBINED_PARAMETERS }
    : undefined
}

/** Whether scopes with these numbers of search parameters combine too many. */
export function hasTooManyCombined(counts: readonly number[]): boolean {
  return counts.filter(it => it > 1).reduce((sum, it) => sum + it, 0) > MAX_COMBINED_PARAMETERS
}

// Only granular scopes have an ampersand.
function countParameters(text: string): number {
  return text.split('&').length
}
