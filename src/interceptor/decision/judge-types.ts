import { isResourceType, type Params, resourceTypes } from '../../fhir/index.ts'
import { type GrantedAccess, hasCompartment } from '../../smart/index.ts'
import { isChained } from './chains.ts'
import type { Decision } from './decision.ts'
import { allOf, type Case, insufficient, judgeType, refusedFor, type Target } from './judge.ts'

/**
 * A search or history over several types. Those that `_type` names must all be reached; where none is named, the
 * server answers with what is reached, and it must be something.
 */
export function judgeTypes(of: Case, params: Params, target: Target = {}): Decision {
  if (params.some(([name]) => isChained(name)))
    return misread('Cannot follow a chain over several types: search one type')
  const named = params.filter(([name]) => name === '_type').flatMap(([, value]) => value.split(','))
  if (!named.every(isResourceType)) return misread('Cannot read _type: it names what is no FHIR R4 type')
  const types = named.length > 0 ? [...new Set(named)] : findCandidates(of.access, target)
  const [first, ...rest] = types.map(type => judgeType(of, type, 's', target))
  if (!first) return misread('Cannot search no type')
  const decision = named.length > 0 ? allOf(first, ...rest) : anyOf([first, ...rest])
  // The request names no type of its own (contract 4).
  if (decision.allowed || decision.refusal.kind !== 'insufficient-scope') return decision
  return refusedFor(insufficient(of, '*', 's'))
}

const COMPARTMENT_TYPES = resourceTypes.filter(hasCompartment)
const typesOfGrant = new WeakMap<GrantedAccess, readonly string[]>()

/** The types to ask about. Of those that a grant reaches in full, the first one decides as all of them do. */
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

function anyOf(decisions: readonly [Decision, ...Decision[]]): Decision {
  const allowed = decisions.filter(decision => decision.allowed)
  const refused = decisions.find(decision => !decision.allowed && decision.refusal.kind === 'not-within')
  return allowed.find(decision => decision.within !== 'everything') ?? allowed[0] ?? refused ?? decisions[0]
}

function misread(text: string): Decision {
  return refusedFor({ kind: 'misunderstood', status: 400, text })
}
