import { isFailure } from '../../core/index.ts'
import {
  findSearchParameter,
  type IncludeRule,
  isTooCostly,
  type Params,
  parseInclude,
  parseSearch,
  type SearchClause,
  SearchSteps,
  toMisunderstood,
} from '../../fhir/index.ts'
import {
  type AccessFilter,
  type Constraint,
  computeAccess,
  type FilterSource,
  isOfNamedOnly,
  isProtected,
  isUnconditional,
  type Permission,
  parseScopes,
  type ScopeContext,
} from '../../smart/index.ts'
import type { InsufficientScope, Refusal } from '../refuse.ts'
import type { Decision, DecisionContext } from './decision.ts'
import { explainDenial } from './decision.ts'

/** The resource or the patient's compartment that a request is about. */
export interface RequestTarget {
  readonly id?: string | undefined
  readonly patient?: string | undefined
}

/** Checks whether a grant permits access to a type or, as far as that is possible without stored data, to a target. */
export function checkType(
  context: DecisionContext,
  type: string,
  permission: Permission,
  target: RequestTarget = {},
): Decision {
  const { unmerged: limits, sources, covering } = context.access.explainFilter(type, permission)
  const within =
    limits === 'everything' ? limits : limits.filter(constraint => mayMatch(constraint, type, target))
  const by = findDecidingSource(sources, within)
  if (by !== undefined) return { allowed: true, by, access: context.access, within }
  if (covering.length === 0) return deny(describeInsufficientScope(context, type, permission))
  return deny({ ...explainDenial(context, type, permission, covering), by: covering[0]?.text })
}

/** The first refusal, otherwise the first decision. */
export function requireEach(first: Decision, ...rest: readonly Decision[]): Decision {
  return first.allowed ? (rest.find(decision => !decision.allowed) ?? first) : first
}

export function deny(refusal: Refusal): Decision {
  return { allowed: false, refusal }
}

export function describeInsufficientScope(
  context: DecisionContext,
  type: string,
  permission: Permission,
): InsufficientScope {
  const { grant, policy } = context
  const lacking = [
    ...(policy.contexts.includes('patient') && grant.patient === undefined ? (['patient'] as const) : []),
    ...(policy.contexts.includes('user') && grant.fhirUser === undefined ? (['fhirUser'] as const) : []),
  ]
  const granted = grant.scopes.flatMap(scope => (scope.kind === 'resource' ? scope.context : []))
  const ignored = [...new Set(granted)].filter(it => !policy.contexts.includes(it))
  return {
    reason: isProtected(policy, type, permission)
      ? 'insufficient-scope-for-protected'
      : ignored.length > 0
        ? 'insufficient-scope-of-context'
        : 'insufficient-scope',
    method: context.method,
    type,
    permission: permission === 's' ? policy.searchPermission : permission,
    contexts: policy.contexts.filter(it => wouldGrant(context, it, type, permission)),
    missing: lacking,
    ...(ignored.length > 0 && { ignored }),
  }
}

/** Whether a wildcard scope of a context would grant access to the type with this token. */
function wouldGrant(
  { grant, policy }: DecisionContext,
  context: ScopeContext,
  type: string,
  permission: Permission,
): boolean {
  const access = computeAccess({ ...grant, scopes: parseScopes(`${context}/*.cruds`) }, policy)
  return access
    .explainFilter(type === '*' ? 'Patient' : type, permission)
    .sources.some(({ by }) => by !== 'fhirUser')
}

function mayMatch(constraint: Constraint, type: string, target: RequestTarget): boolean {
  const { id, patient } = target
  if (id !== undefined && constraint.id !== undefined && constraint.id !== id) return false
  if (constraint.panel && isOfNamedOnly(constraint.panel))
    return mayBelongTo(constraint.panel.patients, constraint, type, target)
  if (constraint.patient === undefined) return true
  if (patient !== undefined && constraint.patient !== patient) return false
  return type !== 'Patient' || id === undefined || constraint.patient === id
}

/** A user without patients may search and finds nothing. Reading one resource, or writing, is refused. */
function mayBelongTo(
  patients: ReadonlySet<string>,
  constraint: Constraint,
  type: string,
  { id, patient }: RequestTarget,
): boolean {
  const requested = patient ?? (type === 'Patient' ? id : undefined)
  if (requested !== undefined) return patients.has(requested)
  return patients.size > 0 || (id === undefined && !constraint.exclusive)
}

function findDecidingSource(
  sources: readonly FilterSource[],
  within: AccessFilter,
): FilterSource['by'] | undefined {
  const decides = (constraint: Constraint) =>
    within === 'everything' ? isUnconditional(constraint) : within.includes(constraint)
  return sources.find(part => part.constraints.some(decides))?.by
}

/**
 * Checks the types that chained parameters search (`subject:Patient.name`, `_has:…`): a caller must not learn through
 * a chain what it may not search. Each link needs a type that the grant covers, and the server applies the filter of
 * that type to the link. The server refuses a parameter that cannot be read, unless reading it takes too much work. The
 * allowed decision has the chains as they were parsed.
 */
export function checkChains(
  context: DecisionContext,
  type: string,
  params: Params,
  allowed: Extract<Decision, { readonly allowed: true }>,
): Decision {
  const chained = params.filter(([name]) => isChained(name))
  if (chained.length === 0) return allowed
  const steps = new SearchSteps(context.work)
  const chains = new Map<Params[number], SearchClause>()
  for (const pair of chained) {
    const clause = parseSearch(type, ...pair, context.policy.fhirBaseUrl, steps)
    if (!isFailure(clause)) {
      if (!maySearchChain(context, clause)) return checkType(context, findRefusedType(context, clause), 's')
      chains.set(pair, clause)
    } else if (isTooCostly(clause)) return deny(toMisunderstood(clause))
  }
  return { ...allowed, chains }
}

export function isChained(name: string): boolean {
  return name.includes('.') || name.startsWith('_has:')
}

/** Whether the grant covers one way through a chain: a link may lead to more than a hundred types. */
function maySearchChain(context: DecisionContext, clause: SearchClause): boolean {
  if (clause.kind === 'has') return maySearchLink(context, clause.type, clause.clause)
  if (clause.kind !== 'chain') return true
  return clause.targets.some(target => maySearchLink(context, target.type, target.clause))
}

function maySearchLink(context: DecisionContext, type: string, clause: SearchClause): boolean {
  return maySearch(context, type) && maySearchChain(context, clause)
}

/** Like `checkType`, without the text of a refusal. */
function maySearch(context: DecisionContext, type: string): boolean {
  return mayAccess(context, type, 's')
}

function mayAccess(context: DecisionContext, type: string, permission: Permission): boolean {
  const { unmerged, sources } = context.access.explainFilter(type, permission)
  const within = unmerged === 'everything' ? unmerged : unmerged.filter(it => mayMatch(it, type, {}))
  return findDecidingSource(sources, within) !== undefined
}

/** The first type that refuses the first way through a chain. */
function findRefusedType(context: DecisionContext, clause: SearchClause): string {
  const [type] = listRefusedTypes(context, clause)
  if (type === undefined) throw new Error('Cannot refuse a chain: every link is covered')
  return type
}

/** The types that refuse the first way through a chain. */
function listRefusedTypes(context: DecisionContext, clause: SearchClause): readonly string[] {
  const link = clause.kind === 'has' ? clause : clause.kind === 'chain' ? clause.targets[0] : undefined
  if (!link) return []
  return [...(maySearch(context, link.type) ? [] : [link.type]), ...listRefusedTypes(context, link.clause)]
}

/**
 * Adds to the decision about a search the other types of its chains and includes that no scope covers: to a refusal, so that
 * a client can request all scopes at once; to an allowed search, which leaves out what it cannot include.
 */
export function nameOthers(
  context: DecisionContext,
  type: string,
  params: Params,
  decision: Decision,
): Decision {
  const included = listRefusedInIncludes(context, type, params)
  if (decision.allowed)
    return included.length === 0 ? decision : { ...decision, lacks: explainLacks(context, included) }
  const { refusal } = decision
  if (refusal.permission === undefined) return decision
  const chained = listRefusedInChains(context, type, params).map(it => [it, 's'] as const)
  const others = explainLacks(context, [...chained, ...included]).filter(it => it.type !== refusal.type)
  return others.length === 0 ? decision : deny({ ...refusal, others })
}

type Need = readonly [type: string, permission: 'r' | 's']

function explainLacks(context: DecisionContext, needs: readonly Need[]): readonly InsufficientScope[] {
  const { searchPermission } = context.policy
  const once = new Map(needs.map(need => [`${need[0]}.${need[1] === 's' ? searchPermission : 'r'}`, need]))
  return [...once.values()].flatMap(need => {
    const decision = checkType(context, ...need)
    return decision.allowed || decision.refusal.permission === undefined ? [] : [decision.refusal]
  })
}

function listRefusedInChains(context: DecisionContext, type: string, params: Params): readonly string[] {
  const steps = new SearchSteps(context.work)
  return params.flatMap(([name, value]) => {
    if (!isChained(name)) return []
    const clause = parseSearch(type, name, value, context.policy.fhirBaseUrl, steps)
    return isFailure(clause) || maySearchChain(context, clause) ? [] : listRefusedTypes(context, clause)
  })
}

/**
 * Of an include that leads to several types, one is enough. `*` asks for whatever the grant covers. Along a reference a
 * resource is read, against one it is searched.
 */
function listRefusedInIncludes(context: DecisionContext, type: string, params: Params): readonly Need[] {
  return params.flatMap(([name, value]) => {
    if (!/^_(?:rev)?include(?:$|:)/.test(name)) return []
    const rules = value.includes('*') ? [] : parseInclude(name, value, [type])
    if (isFailure(rules)) return []
    return rules.flatMap(rule => {
      const types = listIncludedTypes(rule)
      const [first] = types.includes('Patient') ? ['Patient'] : types
      const permission = rule.direction === 'forward' ? 'r' : 's'
      const isLacked = first !== undefined && !types.some(it => mayAccess(context, it, permission))
      return isLacked ? [[first, permission] as const] : []
    })
  })
}

function listIncludedTypes({ direction, source, parameters, target }: IncludeRule): readonly string[] {
  if (direction === 'reverse') return [source]
  if (target !== undefined) return [target]
  return parameters.flatMap(parameter => findSearchParameter(source, parameter)?.target ?? [])
}
