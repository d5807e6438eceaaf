import { remember } from '../../core/index.ts'
import {
  failFor,
  findOperation,
  type Interaction,
  isFor,
  isResourceType,
  mayChange,
  misunderstand,
  operations,
  type Params,
  resourceTypes,
  Work,
} from '../../fhir/index.ts'
import {
  computeAccess,
  type EnforcementPolicy,
  type Grant,
  type GrantedAccess,
  hasCompartment,
  isProtected,
  noAccess,
  type Permission,
  type ResourceScope,
} from '../../smart/index.ts'
import type { Method } from '../refuse.ts'
import {
  checkChains,
  checkType,
  deny,
  describeInsufficientScope,
  isChained,
  nameOthers,
  type RequestTarget,
  requireEach,
} from './check-type.ts'
import type { Decision, DecisionContext } from './decision.ts'

/**
 * Checks a search or history of several types. The grant must cover all types in `_type`. Without `_type` the server
 * searches the types that the grant covers, which must be at least one.
 */
function checkTypes(context: DecisionContext, params: Params, target: RequestTarget = {}): Decision {
  if (params.some(([name]) => isChained(name))) return deny(misunderstand('chain-of-several-types'))
  const named = params.filter(([name]) => name === '_type').flatMap(([, value]) => value.split(','))
  if (!named.every(isResourceType)) return deny(misunderstand('type-parameter-unknown'))
  const types = named.length > 0 ? [...new Set(named)] : findCandidates(context.access, target)
  const [first, ...rest] = types.map(type => checkType(context, type, 's', target))
  if (!first) return deny(misunderstand('type-parameter-unknown'))
  const decision = named.length > 0 ? requireEach(first, ...rest) : requireAny([first, ...rest])
  if (decision.allowed || !isFor('insufficient-scope', decision.refusal.reason)) return decision
  return deny(describeInsufficientScope(context, '*', 's'))
}

const COMPARTMENT_TYPES = resourceTypes.filter(hasCompartment)

const typesOfGrant = new WeakMap<GrantedAccess, readonly string[]>()

/**
 * The types to check. Of the types that a grant covers completely, the first stands for all. A type that no scope names
 * decides nothing; one is kept, for the refusal.
 */
function findCandidates(access: GrantedAccess, { patient }: RequestTarget): readonly string[] {
  if (patient !== undefined) return COMPARTMENT_TYPES
  return remember(typesOfGrant, access, () => {
    const isWhole = (type: string) => access.explainFilter(type, 's').unmerged === 'everything'
    const isNamed = (type: string) => {
      const { covering, sources } = access.explainFilter(type, 's')
      return covering.length > 0 || sources.length > 0
    }
    const first = resourceTypes.find(isWhole)
    const types = resourceTypes.filter(type => type === first || (!isWhole(type) && isNamed(type)))
    return types.length > 0 ? types : resourceTypes.slice(0, 1)
  })
}

function requireAny(decisions: readonly [Decision, ...Decision[]]): Decision {
  const allowed = decisions.filter(decision => decision.allowed)
  const refused = decisions.find(
    decision => !decision.allowed && isFor('not-within', decision.refusal.reason),
  )
  return allowed.find(decision => decision.within !== 'everything') ?? allowed[0] ?? refused ?? decisions[0]
}

type InteractionOf<Kind extends Interaction['kind']> = Extract<Interaction, { kind: Kind }>

/**
 * Decides whether a grant permits an interaction under a policy. A pure function that uses no stored data: the server
 * still applies the access filters of the decision. Pass `access` to decide several times for one grant, and `work` to
 * limit what all these decisions cost.
 */
export function decide(
  interaction: Interaction,
  grant: Grant,
  policy: EnforcementPolicy,
  access: GrantedAccess = computeAccess(grant, policy),
  work: Work = new Work(),
): Decision {
  const makeContext = (method: Method): DecisionContext => ({ method, grant, policy, access, work })
  switch (interaction.kind) {
    case 'capabilities':
    case 'smart-configuration':
      return { allowed: true, by: 'public', access: noAccess, within: [] }
    case 'bundle':
      return decideBundle(makeContext('POST'))
    case 'read':
    case 'vread':
    case 'history-instance':
      return checkType(makeContext('GET'), interaction.type, 'r', interaction)
    case 'history-type':
      return checkType(makeContext('GET'), interaction.type, 's')
    case 'history-system':
      return checkTypes(makeContext('GET'), interaction.params)
    case 'search-system':
    case 'search-type':
    case 'search-compartment':
      return decideSearch(makeContext(interaction.posted ? 'POST' : 'GET'), interaction)
    case 'create':
      return decideWrite(makeContext('POST'), interaction.type, 'c', interaction.ifNoneExist)
    case 'update':
      return checkType(makeContext('PUT'), interaction.type, 'u', interaction)
    case 'patch':
      return checkType(makeContext('PATCH'), interaction.type, 'u', interaction)
    case 'delete':
      return checkType(makeContext('DELETE'), interaction.type, 'd', interaction)
    case 'update-conditional':
      return decideWrite(makeContext('PUT'), interaction.type, 'u', interaction.params)
    case 'patch-conditional':
      return decideWrite(makeContext('PATCH'), interaction.type, 'u', interaction.params)
    case 'delete-conditional':
      return decideWrite(makeContext('DELETE'), interaction.type, 'd', interaction.params)
    case 'operation':
      return decideOperation(makeContext(findMethod(interaction)), interaction)
  }
}

/** Each entry is decided by itself. Without a scope for any entry, the body is not even read. */
function decideBundle(context: DecisionContext): Decision {
  const { access } = context
  if (grantsAnything(access)) return { allowed: true, by: 'entries', access, within: [] }
  for (const type of resourceTypes)
    for (const permission of ALL) {
      const decision = checkType(context, type, permission)
      if (!decision.allowed && isFor('not-within', decision.refusal.reason)) return decision
    }
  return deny(describeInsufficientScope(context, '*', 'r'))
}

const granting = new WeakMap<GrantedAccess, boolean>()

function grantsAnything(access: GrantedAccess): boolean {
  const grants = (type: string, permission: Permission) =>
    access.explainFilter(type, permission).sources.some(({ by }) => by !== 'fhirUser')
  return remember(granting, access, () =>
    resourceTypes.some(type => ALL.some(permission => grants(type, permission))),
  )
}

function decideSearch(
  context: DecisionContext,
  search: InteractionOf<'search-system' | 'search-type' | 'search-compartment'>,
): Decision {
  const target = search.kind === 'search-compartment' ? { patient: search.id } : {}
  if (search.kind === 'search-system' || search.type === '*')
    return checkTypes(context, search.params, target)
  const decision = checkType(context, search.type, 's', target)
  const checked = decision.allowed ? checkChains(context, search.type, search.params, decision) : decision
  return nameOthers(context, search.type, search.params, checked)
}

/** A conditional write is also a search: its response reveals whether a resource matches. */
function decideWrite(
  context: DecisionContext,
  type: string,
  permission: 'c' | 'u' | 'd',
  criteria: Params | undefined,
): Decision {
  const write = checkType(context, type, permission)
  if (criteria === undefined || !write.allowed) return write
  const decision = requireEach(write, checkType(context, type, 's'))
  return decision.allowed ? checkChains(context, type, criteria, decision) : decision
}

type Operation = Extract<Interaction, { readonly kind: 'operation' }>

function findMethod({ posted, cancels }: Operation): Method {
  return cancels ? 'DELETE' : posted ? 'POST' : 'GET'
}

/** Decides on an operation. One that the server does not offer is refused, whatever the grant. */
function decideOperation(context: DecisionContext, operation: Operation): Decision {
  const { name, type, id } = operation
  const rule = findOperation(context.policy.operations ?? operations, operation)
  if (!rule) return deny(failFor('unsupported-operation', { name }))
  const { needs } = rule
  if (needs.kind === 'all-data') return checkAllData(context, mayChange(operation) && !needs.readsOnly)
  if (needs.kind === 'export') return checkExport(context)
  if (type === undefined) return deny(failFor('unsupported-operation', { name }))
  if (needs.kind === 'whole-type') return checkWholeType(context, type)
  const [head, ...tail] = needs.permissions
  const first = checkType(context, type, head, { id })
  const rest = tail.map(permission => checkType(context, type, permission, { id }))
  return needs.kind === 'all' ? requireEach(first, ...rest) : requireEither(first, ...rest)
}

function requireEither(first: Decision, ...rest: readonly Decision[]): Decision {
  return [first, ...rest].find(decision => decision.allowed) ?? first
}

function checkWholeType(context: DecisionContext, type: string): Decision {
  const decision = requireEither(checkType(context, type, 'r'), checkType(context, type, 's'))
  if (!decision.allowed || decision.within === 'everything') return decision
  return deny(failFor('operation-needs-whole-type', { type }))
}

/** Only a backend service exports, within its `system/` scopes. What is in a file is checked line by line. */
function checkExport({ access, grant }: DecisionContext): Decision {
  const scopes = grant.scopes.filter(scope => scope.kind === 'resource')
  const isService = scopes.every(scope => scope.context === 'system') && grant.patient === undefined
  const by = isService ? findExportScope(access) : undefined
  if (!by) return deny(failFor('export-needs-service'))
  return { allowed: true, by, access, within: [] }
}

function findExportScope(access: GrantedAccess): ResourceScope | undefined {
  for (const type of resourceTypes)
    for (const { by } of access.explainFilter(type, 's').sources) if (by !== 'fhirUser') return by
  return undefined
}

const READING: readonly Permission[] = ['r', 's']
const ALL: readonly Permission[] = ['r', 's', 'c', 'u', 'd']

/** The effect and the response of such an operation are unknown, so it needs access to all data. */
function checkAllData(context: DecisionContext, writes: boolean): Decision {
  const isWhole = (permission: Permission) =>
    resourceTypes.every(
      type =>
        isProtected(context.policy, type, permission) ||
        context.access.filterFor(type, permission) === 'everything',
    )
  if ((writes ? ALL : READING).every(isWhole)) return checkType(context, 'Patient', 'r')
  const scope = writes ? 'system/*.cruds' : 'system/*.rs'
  return deny(failFor('operation-needs-all-data', { scope }))
}
