import { fail, isProblem, isRecord } from '../../../fhir/index.ts'
import type { Call, Context } from '../call.ts'
import { type Conditional, conditionalOf, isOpen } from '../judge/hidden-searches.ts'
import type { Problem } from '../problem.ts'
import { matchOf } from '../search/match.ts'

/**
 * What the conditional references in content (`Patient?identifier=…`, R4 http.html#trules) mean to the caller: each is a
 * search within its reach. Those that look nowhere else are left to the upstream.
 */
export async function conditionalReferences(
  context: Context,
  call: Call,
  content: unknown,
): Promise<ReadonlyMap<string, string> | Problem> {
  const found = new Map<string, string>()
  // Whom a reference means is judged, so a Patient is always looked up here.
  const isLeft = (it: Conditional) => it.type !== 'Patient' && isOpen(it, call.access, context.baseUrl)
  for (const reference of referencesIn(content)) {
    const conditional = conditionalOf(reference)
    if (!conditional || isLeft(conditional)) continue
    const { type, params } = conditional
    const match = await matchOf(context, call, type, params)
    if (!match) return fail({ problem: 'no-match', type })
    if (isProblem(match)) return match
    found.set(reference, `${type}/${match.resource.id}`)
  }
  return found
}

function referencesIn(content: unknown): ReadonlySet<string> {
  const found = new Set<string>()
  const look = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(look)
    else if (isRecord(value))
      for (const [name, item] of Object.entries(value)) {
        if (name === 'reference' && typeof item === 'string') found.add(item)
        else look(item)
      }
  }
  look(content)
  return found
}
