import { groupBy, remember } from '../core/index.ts'
import { matches, type Permission, type ResourceReference, takesAlternatives } from '../fhir/index.ts'
import type { Access, AccessFilter, Constraint } from './access-filter.ts'
import { findPatientConstraint, isUnconditional, narrow, uniteConstraints } from './access-filter.ts'
import {
  type EnforcementPolicy,
  type Grant,
  isClinician,
  isProtected,
  isRelationProtected,
  PORTAL_CLIENT,
} from './grant.ts'
import { permits, type ResourceScope } from './scope.ts'

/** The part of a grant that gives access: a scope, or the `fhirUser` of the token for its own resource. */
export interface FilterSource {
  readonly by: ResourceScope | 'fhirUser'
  readonly constraints: readonly Constraint[]
}

/** An access filter, and the parts of the grant that it comes from. */
export interface ExplainedFilter {
  readonly filter: AccessFilter
  /** The filter before its constraints were merged. */
  readonly unmerged: AccessFilter
  readonly sources: readonly FilterSource[]
  /** Scopes that cover type and permission in an honoured context, even if they give access to nothing. */
  readonly covering: readonly ResourceScope[]
}

export interface GrantedAccess extends Access {
  explainFilter(type: string, permission: Permission): ExplainedFilter
}

/** The access of a grant under a policy. Each filter is computed when it is first needed. */
export function computeAccess(grant: Grant, policy: EnforcementPolicy): GrantedAccess {
  const known: Partial<Record<Permission, Map<string, ExplainedFilter>>> = {}
  const explain = (type: string, permission: Permission) => {
    known[permission] ??= new Map()
    return remember(known[permission], type, () => explainFilter({ grant, policy, type, permission }))
  }
  return { explainFilter: explain, filterFor: (type, permission) => explain(type, permission).filter }
}

/** A permission on a type, asked of a grant under a policy. */
interface Asked {
  readonly grant: Grant
  readonly policy: EnforcementPolicy
  readonly type: string
  readonly permission: Permission
}

function explainFilter(asked: Asked): ExplainedFilter {
  const { grant, policy, type, permission } = asked
  // With the default setting `r` permits reads and searches (SCOPE-7).
  const needed = permission === 's' ? policy.searchPermission : permission
  const needsName = isProtected(policy, type, permission)
  const covering: ResourceScope[] = []
  const parts: FilterSource[] = []
  for (const scope of grant.scopes) {
    if (!permits(scope, type, needed) || !isHonoured(scope, grant, policy)) continue
    if (needsName && (scope.context !== 'system' || scope.type === '*')) continue
    covering.push(scope)
    const found = findScopeConstraints(scope, asked)
    const constraints = isRelationProtected(policy, scope.context, type, permission)
      ? found.filter(isUnconditional)
      : found
    if (constraints.length > 0) parts.push({ by: scope, constraints })
  }
  // A token with `fhirUser` may always read the resource of its user (PATIENT-7).
  const own = grant.fhirUser
  if (permission === 'r' && own?.type === type) parts.push({ by: 'fhirUser', constraints: [{ id: own.id }] })
  const united = uniteConstraints(parts.flatMap(part => part.constraints))
  const unmerged = united === 'everything' ? united : trim(united)
  return {
    filter: unmerged === 'everything' ? unmerged : mergeValues(unmerged),
    unmerged,
    sources: trim(parts),
    covering: trim(covering),
  }
}

/** V8 reserves 17 entries for an array that grows, and a server remembers these arrays for each token. */
function trim<T>(list: readonly T[]): readonly T[] {
  return list.length === 0 ? NONE : list.slice()
}

const NONE: readonly never[] = []

function isHonoured(scope: ResourceScope, grant: Grant, policy: EnforcementPolicy): boolean {
  return policy.contexts.includes(scope.context) || grant.clientId === PORTAL_CLIENT
}

function findScopeConstraints(scope: ResourceScope, asked: Asked): readonly Constraint[] {
  const { type, policy } = asked
  if (!scope.query.every(pair => isEvaluable(type, pair, policy.fhirBaseUrl))) return []
  return findContextConstraints(scope, asked).map(constraint => narrow(constraint, scope.query))
}

function findContextConstraints(scope: ResourceScope, asked: Asked): readonly Constraint[] {
  const { grant, type, permission } = asked
  switch (scope.context) {
    case 'patient': {
      const constraint =
        grant.patient === undefined ? undefined : findPatientConstraint(grant.patient, type, permission)
      return constraint ? [constraint] : []
    }
    case 'user': {
      const rights = grant.fhirUser ? findUserFilter(grant.fhirUser, asked) : []
      return rights === 'everything' ? [{}] : rights
    }
    case 'system':
      return [{}]
  }
}

/** The access of a user with a `user/` scope. Only clinicians may see every patient (USER-2). */
function findUserFilter(user: ResourceReference, { grant, policy, type, permission }: Asked): AccessFilter {
  if (isClinician(user)) return policy.userFilter?.(user, type, permission) ?? 'everything'
  const { userPatients = [] } = grant
  const patients = new Set(user.type === 'Patient' ? [user.id, ...userPatients] : userPatients)
  return [...patients].flatMap(patient => findPatientConstraint(patient, type, permission) ?? [])
}

// A parameter that cannot be evaluated grants nothing. An empty resource shows whether it can be.
function isEvaluable(type: string, [name, value]: readonly [string, string], baseUrl: string): boolean {
  return matches({ resourceType: type }, name, value, baseUrl) !== undefined
}

type Query = NonNullable<Constraint['query']>

/**
 * Merges constraints that differ only in the value of one search parameter: `category=a` and `category=b` become
 * `category=a,b` (R4 search.html#combining). A token may have a hundred such scopes of one type, and each constraint costs
 * a lookup for every resource.
 */
export function mergeValues(constraints: readonly Constraint[]): readonly Constraint[] {
  if (constraints.length < 2) return constraints
  const merged: (Constraint | undefined)[] = [...constraints]
  const panels = new Map(constraints.map(({ panel }, at) => [panel, at]))
  for (const [name, places] of groupByName(constraints)) {
    if (places.length < 2 || !takesAlternatives(name)) continue
    const alike = groupBy(places, at => {
      const constraint = merged[at]
      return (constraint && createKeyWithout(name, constraint, panels.get(constraint.panel))) ?? at
    })
    for (const [first = 0, ...others] of alike.values()) {
      const constraint = merged[first]
      if (!constraint || others.length === 0) continue
      const rest = others.flatMap(at => merged[at] ?? [])
      merged[first] = mergeAlike(constraint, rest, name)
      for (const at of others) merged[at] = undefined
    }
  }
  return merged.filter(constraint => constraint !== undefined)
}

/** The constraints that name each search parameter: only these are compared. */
function groupByName(constraints: readonly Constraint[]): ReadonlyMap<string, readonly number[]> {
  const places = new Map<string, number[]>()
  for (const [at, { query = [] }] of constraints.entries())
    for (const name of new Set(query.map(([it]) => it))) {
      const known = places.get(name) ?? []
      places.set(name, known)
      known.push(at)
    }
  return places
}

/** Identifies a constraint without one search parameter; undefined if its values cannot be merged. */
function createKeyWithout(
  name: string,
  { panel: _, query = [], ...subject }: Constraint,
  panel: number | undefined,
): string | undefined {
  const [value, ...more] = listValues(query, name)
  // A backslash at the end of a value would escape the comma.
  if (more.length > 0 || value?.endsWith('\\')) return undefined
  const others = query.filter(([other]) => other !== name)
  return JSON.stringify([subject, panel, others.map(pair => JSON.stringify(pair)).sort()])
}

function mergeAlike(first: Constraint, others: readonly Constraint[], name: string): Constraint {
  const values = new Set([first, ...others].flatMap(({ query = [] }) => listValues(query, name)))
  const query = (first.query ?? []).map(pair =>
    pair[0] === name ? ([name, [...values].join(',')] as const) : pair,
  )
  return { ...first, query }
}

function listValues(query: Query, name: string): readonly string[] {
  return query.flatMap(([other, value]) => (other === name ? [value] : []))
}
