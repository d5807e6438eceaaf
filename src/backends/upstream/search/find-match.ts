import { fail, formatExact, type Params } from '../../../fhir/index.ts'
import type { ConditionMatch, Failure, StoredVersion } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../context.ts'
import { UpstreamVersion } from '../read-version.ts'
import { searchFor, visitMatches } from './collect.ts'
import type { CheckedResource } from './fetch-page.ts'
import { buildExactParams } from './narrow.ts'

/**
 * Finds the resource that a condition is about. Each match is compared with the condition, for an upstream that ignores
 * a parameter would have another resource overwritten or deleted. Where it does, it must not decide by itself.
 */
export async function findMatch(
  context: Context,
  call: Call,
  type: string,
  params: Params,
): Promise<ConditionMatch | Failure> {
  const found: CheckedResource[] = []
  let strays = 0
  const count = await visitMatches(context, searchFor(call, type, params), 1, page => {
    found.push(...page.matches)
    strays += page.strays
  })
  if (typeof count !== 'number')
    return count.problem === 'too-costly' ? fail({ problem: 'multiple-matches', type }) : count
  const [match] = found
  // Only as far as parameters say what the caller may search.
  const narrowing = strays === 0 ? buildExactParams(type, call.access.filterFor(type, 's')) : undefined
  return {
    match: match && toVersion(type, match),
    ifNoneExist: narrowing && [...params, ...narrowing],
  }
}

function toVersion(type: string, { resource, exact }: CheckedResource): StoredVersion {
  const headers = { 'content-type': 'application/fhir+json' }
  return new UpstreamVersion(type, resource.id ?? '', { status: 200, headers, text: formatExact(exact) })
}
