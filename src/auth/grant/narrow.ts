import { isResourceType, resourceTypes } from '../../fhir/index.ts'
import { type Permission, parseScope, type ResourceScope, type Scope } from '../../smart/index.ts'
import { ScopeIndex } from './scope-index.ts'

const PERMISSIONS: readonly Permission[] = ['c', 'r', 'u', 'd', 's']
const V1_WORDS: Readonly<Record<string, string>> = { rs: 'read', cud: 'write', cruds: '*' }

const canonicalTypes: ReadonlyMap<string, string> = new Map(
  [...resourceTypes].map(type => [type.toLowerCase(), type]),
)

/** What a client may have, ready to be asked about scope after scope. */
export interface AllowedScopes {
  /** Whether the allowed scopes cover all of this one. */
  covers(scope: Scope): boolean
  /** The part of one resource scope that the allowed ones cover: fewer permissions, fewer types, a tighter query. */
  narrow(asked: ResourceScope): readonly ResourceScope[]
}

/**
 * Files the allowed scopes by type and permission, each once. A scope that they cover costs a few lookups. One that they
 * cover in part is compared only with those that share a type and a permission that is not covered: almost every
 * comparison gives a part of the result, and a result has at most `MOST_SCOPES` parts. No scope is narrowed twice.
 */
export function allowedScopes(scopes: readonly Scope[]): AllowedScopes {
  const index = new ScopeIndex(scopes)
  const filed = new Map<string, Filed[]>()
  for (const [at, scope] of withoutRepeats(scopes).entries())
    for (const permission of scope.permissions)
      for (const place of [typeKey(scope), scope.context]) {
        const key = `${permission} ${place}`
        const same = filed.get(key) ?? []
        filed.set(key, same)
        same.push({ scope, at })
      }

  /** In the order in which they are allowed, those of the type before wildcards. */
  function candidatesFor(asked: ResourceScope, missing: readonly Permission[]): readonly ResourceScope[] {
    const places = asked.type === '*' ? [asked.context] : [typeKey(asked), typeKey({ ...asked, type: '*' })]
    return places.flatMap(place => {
      const found = new Set(missing.flatMap(permission => filed.get(`${permission} ${place}`) ?? []))
      return [...found].sort((a, b) => a.at - b.at).map(({ scope }) => scope)
    })
  }

  function narrow(asked: ResourceScope): readonly ResourceScope[] {
    const covered = index.coveredLetters(asked)
    const whole =
      covered.size === 0 ? [] : [{ ...asked, permissions: PERMISSIONS.filter(it => covered.has(it)) }]
    const missing = [...asked.permissions].filter(permission => !covered.has(permission))
    const rest = candidatesFor(asked, missing).map(scope => overlap(asked, scope))
    const byReach = Map.groupBy([...whole, ...rest], part => JSON.stringify([part.type, part.query]))
    return [...byReach.values()].flatMap(same => written(same, asked.v1) ?? [])
  }

  const narrowed = new Map<string, readonly ResourceScope[]>()
  return {
    covers: scope => index.covers(scope),
    narrow(asked) {
      const parts = narrowed.get(asked.text) ?? narrow(asked)
      narrowed.set(asked.text, parts)
      return parts
    },
  }
}

interface Filed {
  readonly scope: ResourceScope
  /** Its place among the allowed scopes. */
  readonly at: number
}

/** The resource scopes; of those that differ in the case of their type the first. */
function withoutRepeats(scopes: readonly Scope[]): readonly ResourceScope[] {
  const found = new Map<string, ResourceScope>()
  for (const scope of scopes) {
    if (scope.kind !== 'resource') continue
    const key = JSON.stringify([typeKey(scope), [...scope.permissions], scope.query])
    if (!found.has(key)) found.set(key, scope)
  }
  return [...found.values()]
}

function typeKey({ context, type }: ResourceScope): string {
  return `${context}/${type.toLowerCase()}`
}

/** The scope with the type as R4 writes it (contract 5.1), or undefined when R4 has no such type. */
export function canonical(scope: ResourceScope): ResourceScope | undefined {
  if (scope.type === '*' || isResourceType(scope.type)) return scope
  const type = canonicalTypes.get(scope.type.toLowerCase())
  const text = type && scope.text.replace(`/${scope.type}.`, `/${type}.`)
  return text === undefined ? undefined : resourceScope(text)
}

/** The scope with only these permissions of its own, or undefined when none is left. */
export function withLetters(
  scope: ResourceScope,
  keep: (permission: Permission) => boolean,
): ResourceScope | undefined {
  const permissions = PERMISSIONS.filter(permission => scope.permissions.has(permission) && keep(permission))
  return permissions.length === scope.permissions.size ? scope : write(scope, permissions, scope.v1)
}

/** The scope on one type of a wildcard, or with a query. */
export function narrowedTo(
  scope: ResourceScope,
  to: Partial<Pick<ResourceScope, 'type' | 'query'>>,
): ResourceScope | undefined {
  return write(
    { ...scope, ...to },
    PERMISSIONS.filter(permission => scope.permissions.has(permission)),
    scope.v1,
  )
}

interface Part extends Pick<ResourceScope, 'context' | 'type' | 'query'> {
  readonly permissions: readonly Permission[]
}

/** Of two scopes of one context whose types and permissions meet. */
function overlap(asked: ResourceScope, allowed: ResourceScope): Part {
  const permissions = PERMISSIONS.filter(
    permission => asked.permissions.has(permission) && allowed.permissions.has(permission),
  )
  const type = asked.type === '*' ? allowed.type : asked.type
  return { context: asked.context, type, permissions, query: joined(asked.query, allowed.query) }
}

// Both restrictions hold: the items of a query are ANDed (SMART 2.2, finer-grained scopes).
function joined(a: ResourceScope['query'], b: ResourceScope['query']): ResourceScope['query'] {
  const more = b.filter(([name, value]) => !a.some(item => item[0] === name && item[1] === value))
  return [...a, ...more]
}

function written(parts: readonly Part[], v1: boolean): ResourceScope | undefined {
  const [first] = parts
  const permissions = PERMISSIONS.filter(permission =>
    parts.some(part => part.permissions.includes(permission)),
  )
  return first && write(first, permissions, v1)
}

// What was asked in v1 is granted in v1, where v1 has a word for it (SMART 2.2, scopes for v1).
function write(
  { context, type, query }: Pick<ResourceScope, 'context' | 'type' | 'query'>,
  permissions: readonly Permission[],
  v1: boolean,
): ResourceScope | undefined {
  const joinedLetters = permissions.join('')
  const word = v1 && query.length === 0 ? V1_WORDS[joinedLetters] : undefined
  const suffix = query.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&')
  return resourceScope(`${context}/${type}.${word ?? joinedLetters}${suffix === '' ? '' : `?${suffix}`}`)
}

function resourceScope(text: string): ResourceScope | undefined {
  const scope = parseScope(text)
  return scope?.kind === 'resource' ? scope : undefined
}

// Only what a scope token or its query cannot hold as it is; `|`, `:` and `/` stay readable.
function encode(text: string): string {
  return text.replace(/[^\x21\x23\x24\x27-\x3c\x3e\x40-\x5b\x5d-\x7e]/g, encodeURIComponent)
}
