import { exactText, fail, type Params } from '../../../fhir/index.ts'
import type { ConditionMatch, Failure, StoredVersion } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../call.ts'
import { UpstreamVersion } from '../read-version.ts'
import { eachFound, searchFor } from './collect.ts'
import type { Released } from './fetch-page.ts'
import { exactParams } from './narrow.ts'

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
  const found: Released[] = []
  let strays = 0
  const count = await eachFound(context, searchFor(call, type, params), 1, page => {
    found.push(...page.matches)
    strays += page.strays
  })
  if (typeof count !== 'number')
    return count.problem === 'too-costly' ? fail({ problem: 'multiple-matches', type }) : count
  const [match] = found
  // Only as far as parameters say what the caller may search.
  const narrowing = strays === 0 ? exactParams(type, call.access.filterFor(type, 's')) : undefined
  return {
    match: match && toVersion(type, match),
    ifNoneExist: narrowing && [...params, ...narrowing],
  }
}

function toVersion(type: string, { resource, exact }: Released): StoredVersion {
  const headers = { 'content-type': 'application/fhir+json' }
  return new UpstreamVersion(type, resource.id ?? '', { status: 200, headers, text: exactText(exact) })
}
