import { limits, type Params, parseSearch, type SearchClause } from '../../fhir/index.ts'
import { checkType, deny } from './check-type.ts'
import type { Decision, DecisionContext } from './decision.ts'

/**
 * Checks the types that chained parameters search (`subject:Patient.name`, `_has:…`): a caller must not learn through
 * a chain what it may not search. Each link needs a type that the grant covers, and the server applies the filter of
 * that type to the link. The server refuses a parameter that cannot be read, unless reading it takes too many steps: all
 * parameters of a search share one limit of steps.
 */
export function checkChains(context: DecisionContext, type: string, params: Params): readonly Decision[] {
  const steps = { left: limits.SEARCH_STEPS }
  const decisions: Decision[] = []
  for (const [name, value] of params) {
    if (!isChained(name)) continue
    const clause = parseSearch(type, name, value, context.policy.fhirBaseUrl, steps)
    if (clause.kind !== 'error') decisions.push(...checkClause(context, clause))
    else if (clause.reason === 'too-costly')
      return [deny({ kind: 'misunderstood', status: 400, text: clause.text, isExcess: true })]
  }
  return decisions
}

export function isChained(name: string): boolean {
  return name.includes('.') || name.startsWith('_has:')
}

function checkClause(context: DecisionContext, clause: SearchClause): readonly Decision[] {
  if (clause.kind === 'has') return checkLink(context, clause.type, clause.clause)
  if (clause.kind !== 'chain') return []
  const ways = clause.targets.map(target => checkLink(context, target.type, target.clause))
  const way = ways.find(decisions => decisions.every(decision => decision.allowed))
  return way ?? ways[0] ?? []
}

function checkLink(context: DecisionContext, type: string, clause: SearchClause): readonly Decision[] {
  return [checkType(context, type, 's'), ...checkClause(context, clause)]
}
