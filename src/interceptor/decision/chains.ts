import { type Params, parseSearch, type SearchClause } from '../../fhir/index.ts'
import type { Decision } from './decision.ts'
import { type Case, judgeType } from './judge.ts'

/**
 * The decisions on the types that chained parameters look into (`subject:Patient.name`, `_has:…`): a caller must not
 * learn by them what it may not search (attacks.md 5, 8). Each link needs a type that is reached; the server limits
 * every link by that reach. A parameter that cannot be read is for the server to refuse.
 */
export function judgeChains(of: Case, type: string, params: Params): readonly Decision[] {
  return params.flatMap(([name, value]) => {
    if (!isChained(name)) return []
    const clause = parseSearch(type, name, value, of.policy.fhirBaseUrl)
    return clause.kind === 'error' ? [] : judgeClause(of, clause)
  })
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
