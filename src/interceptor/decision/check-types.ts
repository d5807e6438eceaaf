import { isResourceType, type Params, resourceTypes } from '../../fhir/index.ts'
import { type GrantedAccess, hasCompartment } from '../../smart/index.ts'
import { isChained } from './check-chains.ts'
import { checkType, deny, describeInsufficientScope, requireAll, type Target } from './check-type.ts'
import type { Decision, DecisionContext } from './decision.ts'

/**
 * Checks a search or history of several types. The grant must cover all types in `_type`. Without `_type` the server
 * searches the types that the grant covers, which must be at least one.
 */
export function checkTypes(context: DecisionContext, params: Params, target: Target = {}): Decision {
  if (params.some(([name]) => isChained(name)))
    return denyUnreadable('Cannot follow a chain in a search of several types: search one type')
  const named = params.filter(([name]) => name === '_type').flatMap(([, value]) => value.split(','))
  if (!named.every(isResourceType))
    return denyUnreadable('Cannot read _type: it names an unknown resource type')
  const types = named.length > 0 ? [...new Set(named)] : findCandidates(context.access, target)
  const [first, ...rest] = types.map(type => checkType(context, type, 's', target))
  if (!first) return denyUnreadable('Cannot search: _type names no resource type')
  const decision = named.length > 0 ? requireAll(first, ...rest) : requireAny([first, ...rest])
  if (decision.allowed || decision.refusal.kind !== 'insufficient-scope') return decision
  return deny(describeInsufficientScope(context, '*', 's'))
}

const COMPARTMENT_TYPES = resourceTypes.filter(hasCompartment)
const typesOfGrant = new WeakMap<GrantedAccess, readonly string[]>()

/** The types to check. Of the types that a grant covers completely, the first stands for all. */
function findCandidates(access: GrantedAccess, { patient }: Target): readonly string[] {
  if (patient !== undefined) return COMPARTMENT_TYPES
  const known = typesOfGrant.get(access)
  if (known) return known
  const isWhole = (type: string) => access.explainFilter(type, 's').unmerged === 'everything'
  const first = resourceTypes.find(isWhole)
  const types = resourceTypes.filter(type => type === first || !isWhole(type))
  typesOfGrant.set(access, types)
  return types
}

function requireAny(decisions: readonly [Decision, ...Decision[]]): Decision {
  const allowed = decisions.filter(decision => decision.allowed)
  const refused = decisions.find(decision => !decision.allowed && decision.refusal.kind === 'not-within')
  return allowed.find(decision => decision.within !== 'everything') ?? allowed[0] ?? refused ?? decisions[0]
}

function denyUnreadable(text: string): Decision {
  return deny({ kind: 'misunderstood', status: 400, text })
}
