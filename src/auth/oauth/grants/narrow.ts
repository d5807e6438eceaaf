import { isResourceType, resourceTypes } from '../../../fhir/index.ts'
import {
  getImpliedKeys,
  getQueryKey,
  type Permission,
  parseScope,
  type ResourceScope,
  type Scope,
} from '../../../smart/index.ts'

const PERMISSIONS: readonly Permission[] = ['c', 'r', 'u', 'd', 's']
const V1_WORDS: Readonly<Record<string, string>> = { rs: 'read', cud: 'write', cruds: '*' }

const canonicalTypes: ReadonlyMap<string, string> = new Map(
  [...resourceTypes].map(type => [type.toLowerCase(), type]),
)

/** The registered scopes of a client, indexed for lookups. */
export interface AllowedScopes {
  /** Whether the allowed scopes cover all of this one. */
  covers(scope: Scope): boolean
  /** The parts of a resource scope that the allowed scopes cover: fewer permissions, fewer types, a tighter query. */
  narrow(requested: ResourceScope): readonly ResourceScope[]
}

/**
 * Indexes the allowed scopes by type and permission. A scope that they cover completely costs a few lookups. One that
 * they cover partly is compared only with those that share its type and a permission that is not covered, so almost every
 * comparison adds a part to the result, which has at most `MAX_SCOPES` parts. No scope is narrowed twice.
 */
export function indexAllowedScopes(scopes: readonly Scope[]): AllowedScopes {
  const index = new ScopeIndex(scopes)
  const indexed = new Map<string, IndexedScope[]>()
  for (const [position, scope] of removeDuplicates(scopes).entries())
    for (const permission of scope.permissions)
      for (const target of [makeTypeKey(scope), scope.context]) {
        const key = `${permission} ${target}`
        const same = indexed.get(key) ?? []
        indexed.set(key, same)
        same.push({ scope, position })
      }

  /** In the order of the allowed scopes, those of the type before wildcards. */
  function findCandidates(
    requested: ResourceScope,
    missing: readonly Permission[],
  ): readonly ResourceScope[] {
    const targets =
      requested.type === '*'
        ? [requested.context]
        : [makeTypeKey(requested), makeTypeKey({ ...requested, type: '*' })]
    return targets.flatMap(target => {
      const found = new Set(missing.flatMap(permission => indexed.get(`${permission} ${target}`) ?? []))
      return [...found].sort((a, b) => a.position - b.position).map(({ scope }) => scope)
    })
  }

  function narrow(requested: ResourceScope): readonly ResourceScope[] {
    const covered = index.findCoveredPermissions(requested)
    const whole =
      covered.size === 0 ? [] : [{ ...requested, permissions: PERMISSIONS.filter(it => covered.has(it)) }]
    const missing = [...requested.permissions].filter(permission => !covered.has(permission))
    const rest = findCandidates(requested, missing).map(scope => intersect(requested, scope))
    const byTarget = Map.groupBy([...whole, ...rest], part => JSON.stringify([part.type, part.query]))
    return [...byTarget.values()].flatMap(same => writeParts(same, requested.v1) ?? [])
  }

  const narrowed = new Map<string, readonly ResourceScope[]>()
  return {
    covers: scope => index.covers(scope),
    narrow(requested) {
      const parts = narrowed.get(requested.text) ?? narrow(requested)
      narrowed.set(requested.text, parts)
      return parts
    },
  }
}

interface IndexedScope {
  readonly scope: ResourceScope
  /** Its position among the allowed scopes. */
  readonly position: number
}

/** The resource scopes; the first of those that differ only in the case of their type. */
function removeDuplicates(scopes: readonly Scope[]): readonly ResourceScope[] {
  const found = new Map<string, ResourceScope>()
  for (const scope of scopes) {
    if (scope.kind !== 'resource') continue
    const key = JSON.stringify([makeTypeKey(scope), [...scope.permissions], scope.query])
    if (!found.has(key)) found.set(key, scope)
  }
  return [...found.values()]
}

function makeTypeKey({ context, type }: ResourceScope): string {
  return `${context}/${type.toLowerCase()}`
}

/** The scope with the exact R4 name of its type, which is compared without regard to case. Undefined for an unknown type. */
export function toCanonical(scope: ResourceScope): ResourceScope | undefined {
  if (scope.type === '*' || isResourceType(scope.type)) return scope
  const type = canonicalTypes.get(scope.type.toLowerCase())
  const text = type && scope.text.replace(`/${scope.type}.`, `/${type}.`)
  return text === undefined ? undefined : parseResourceScope(text)
}

/** The scope with the permissions that pass the test, or undefined if none is left. */
export function keepPermissions(
  scope: ResourceScope,
  keep: (permission: Permission) => boolean,
): ResourceScope | undefined {
  const permissions = PERMISSIONS.filter(permission => scope.permissions.has(permission) && keep(permission))
  return permissions.length === scope.permissions.size ? scope : writeScope(scope, permissions, scope.v1)
}

/** Limits a wildcard to one type, or a scope to a query. */
export function narrowTo(
  scope: ResourceScope,
  to: Partial<Pick<ResourceScope, 'type' | 'query'>>,
): ResourceScope | undefined {
  return writeScope(
    { ...scope, ...to },
    PERMISSIONS.filter(permission => scope.permissions.has(permission)),
    scope.v1,
  )
}

interface Part extends Pick<ResourceScope, 'context' | 'type' | 'query'> {
  readonly permissions: readonly Permission[]
}

/** Intersects two scopes of one context whose types and permissions overlap. */
function intersect(requested: ResourceScope, allowed: ResourceScope): Part {
  const permissions = PERMISSIONS.filter(
    permission => requested.permissions.has(permission) && allowed.permissions.has(permission),
  )
  const type = requested.type === '*' ? allowed.type : requested.type
  return {
    context: requested.context,
    type,
    permissions,
    query: mergeQueries(requested.query, allowed.query),
  }
}

// SMART 2.2, finer-grained scopes: the parameters of a query are combined with AND.
function mergeQueries(a: ResourceScope['query'], b: ResourceScope['query']): ResourceScope['query'] {
  const more = b.filter(([name, value]) => !a.some(item => item[0] === name && item[1] === value))
  return [...a, ...more]
}

function writeParts(parts: readonly Part[], v1: boolean): ResourceScope | undefined {
  const [first] = parts
  const permissions = PERMISSIONS.filter(permission =>
    parts.some(part => part.permissions.includes(permission)),
  )
  return first && writeScope(first, permissions, v1)
}

// SMART 2.2, scopes for v1: a v1 request gets v1 scopes if v1 can express them.
function writeScope(
  { context, type, query }: Pick<ResourceScope, 'context' | 'type' | 'query'>,
  permissions: readonly Permission[],
  v1: boolean,
): ResourceScope | undefined {
  const permissionText = permissions.join('')
  const word = v1 && query.length === 0 ? V1_WORDS[permissionText] : undefined
  const suffix = query.map(([name, value]) => `${encodeQuery(name)}=${encodeQuery(value)}`).join('&')
  return parseResourceScope(
    `${context}/${type}.${word ?? permissionText}${suffix === '' ? '' : `?${suffix}`}`,
  )
}

function parseResourceScope(text: string): ResourceScope | undefined {
  const scope = parseScope(text)
  return scope?.kind === 'resource' ? scope : undefined
}

// Encodes only characters that a scope cannot contain, so that `|`, `:` and `/` stay readable.
function encodeQuery(text: string): string {
  return text.replace(/[^\x21\x23\x24\x27-\x3c\x3e\x40-\x5b\x5d-\x7e]/g, encodeURIComponent)
}

/**
 * A set of scopes that can tell in constant time whether they cover another scope. Each scope is indexed by its target;
 * a lookup tries every wider target.
 */
export class ScopeIndex {
  readonly #counts = new Map<string, number>()

  constructor(scopes: Iterable<Scope> = []) {
    for (const scope of scopes) this.add(scope)
  }

  add(scope: Scope): void {
    this.#count(scope, 1)
  }

  /** Removes a scope that was added before. */
  remove(scope: Scope): void {
    this.#count(scope, -1)
  }

  /** Whether the scopes together cover all of this one. */
  covers(scope: Scope): boolean {
    return scope.kind === 'plain'
      ? this.#has(scope.text)
      : this.findCoveredPermissions(scope).size === scope.permissions.size
  }

  /** The permissions of a scope that the set covers completely. */
  findCoveredPermissions(scope: ResourceScope): ResourceScope['permissions'] {
    const wider = listWiderKeys(scope)
    return new Set(
      [...scope.permissions].filter(permission => wider.some(key => this.#has(permission + key))),
    )
  }

  #count(scope: Scope, by: 1 | -1): void {
    for (const key of listKeys(scope)) this.#counts.set(key, (this.#counts.get(key) ?? 0) + by)
  }

  #has(key: string): boolean {
    return (this.#counts.get(key) ?? 0) > 0
  }
}

function listKeys(scope: Scope): readonly string[] {
  if (scope.kind === 'plain') return [scope.text]
  const key = makeKey(scope, scope.type, getQueryKey(scope.query))
  return [...scope.permissions].map(permission => permission + key)
}

/** The keys of the scope's target and of all wider ones: the wildcard type, fewer search parameters. */
function listWiderKeys(scope: ResourceScope): readonly string[] {
  const types = scope.type === '*' ? ['*'] : [scope.type, '*']
  return getImpliedKeys(scope.query).flatMap(query => types.map(type => makeKey(scope, type, query)))
}

// The leading space distinguishes it from plain scopes.
function makeKey({ context }: ResourceScope, type: string, query: string): string {
  return ` ${context}/${type.toLowerCase()}?${query}`
}
