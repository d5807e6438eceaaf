import { limits, type Params, parseSearch, type SearchClause } from '../../fhir/index.ts'
import type { Decision } from './decision.ts'
import { type Case, judgeType, refusedFor } from './judge.ts'

/**
 * The decisions on the types that chained parameters look into (`subject:Patient.name`, `_has:…`): a caller must not
 * learn by them what it may not search (attacks.md 5, 8). Each link needs a type that is reached; the server limits
 * every link by that reach. A parameter that cannot be read is for the server to refuse, unless it takes too long to be
 * read: all parameters of a search share the steps that it may take.
 */
export function judgeChains(of: Case, type: string, params: Params): readonly Decision[] {
  const steps = { left: limits.SEARCH_STEPS }
  const decisions: Decision[] = []
  for (const [name, value] of params) {
    if (!isChained(name)) continue
    const clause = parseSearch(type, name, value, of.policy.fhirBaseUrl, steps)
    if (clause.kind !== 'error') decisions.push(...judgeClause(of, clause))
    else if (clause.reason === 'too-costly')
      return [refusedFor({ kind: 'misunderstood', status: 400, text: clause.text, isExcess: true })]
  }
  return decisions
}

export function isChained(name: string): boolean {
  return name.includes('.') || name.startsWith('_has:')
}

function judgeClause(of: Case, clause: SearchClause): readonly Decision[] {
  if (clause.kind === 'has') return judgeLink(of, clause.type, clause.clause)
  if (clause.kind !== 'chain') return []
  const ways = clause.targets.map(target => judgeLink(of, target.type, target.clause))
  const way = ways.find(decisions => decisions.every(decision => decision.allowed))
  return way ?? ways[0] ?? []
}

function judgeLink(of: Case, type: string, clause: SearchClause): readonly Decision[] {
  return [judgeType(of, type, 's'), ...judgeClause(of, clause)]
}
