import { isProblem, isRecord, isResourceType, parseParams } from '../../fhir/index.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import { matchOf } from '../search/match.ts'

const CONDITIONAL = /^([A-Z][A-Za-z]+)\?(.+)$/

/**
 * What the conditional references in content (`Patient?identifier=…`, R4 http.html#trules) mean to the caller: each is a
 * search within its reach. Those to what it may search everywhere are left to the upstream.
 */
export async function conditionalReferences(
  context: Context,
  call: Call,
  content: unknown,
): Promise<ReadonlyMap<string, string> | Problem> {
  const found = new Map<string, string>()
  for (const reference of referencesIn(content)) {
    const [, type = '', query = ''] = CONDITIONAL.exec(reference) ?? []
    const params = parseParams(query)
    if (!isResourceType(type) || !params || call.access.reach(type, 's') === 'everything') continue
    const match = await matchOf(context, call, type, params)
    if (!match) return { problem: 'no-match', type }
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
