import { isResourceType, type Params, resourceTypes } from '../../fhir/index.ts'
import { hasCompartment } from '../../smart/index.ts'
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
  const candidates = target.patient === undefined ? resourceTypes : resourceTypes.filter(hasCompartment)
  const types = named.length > 0 ? named : candidates
  const [first, ...rest] = types.map(type => judgeType(of, type, 's', target))
  if (!first) return misread('Cannot search no type')
  const decision = named.length > 0 ? allOf(first, ...rest) : anyOf([first, ...rest])
  // The request names no type of its own (contract 4).
  if (decision.allowed || decision.refusal.kind !== 'insufficient-scope') return decision
  return refusedFor(insufficient(of, '*', 's'))
}

function anyOf(decisions: readonly [Decision, ...Decision[]]): Decision {
  const allowed = decisions.filter(decision => decision.allowed)
  const refused = decisions.find(decision => !decision.allowed && decision.refusal.kind === 'not-within')
  return allowed.find(decision => decision.within !== 'everything') ?? allowed[0] ?? refused ?? decisions[0]
}

function misread(text: string): Decision {
  return refusedFor({ kind: 'misunderstood', status: 400, text })
}
