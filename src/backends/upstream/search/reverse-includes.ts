import { findSearchParameter, type IncludeRule } from '../../../fhir/index.ts'
import { type Failure, type FhirRequest, isFailure } from '../../../fhir-api/index.ts'
import { chunk } from '../chunk.ts'
import type { GatewayContext } from '../context.ts'
import { LIST_VALUES, REVERSE_INCLUDES } from '../limits.ts'
import type { CheckedResource } from '../paging.ts'
import { buildStrictSearch, visitMatches } from './chains.ts'

/** The resources within the caller's access that refer to the matches of a page by reverse includes. */
export async function findReverseIncludes(
  context: GatewayContext,
  request: FhirRequest,
  rules: readonly IncludeRule[],
  matches: readonly CheckedResource[],
): Promise<readonly CheckedResource[] | Failure> {
  const found: CheckedResource[] = []
  for (const { source, code, target } of rules.flatMap(listParameters)) {
    const targets = target === undefined ? findSearchParameter(source, code)?.target : [target]
    const named = matches
      .filter(({ type }) => targets?.includes(type) ?? true)
      .map(({ type, id }) => `${type}/${id}`)
    for (const few of chunk(named, LIST_VALUES)) {
      const search = buildStrictSearch(request, source, [
        [code, few.join()],
        ['_count', '500'],
      ])
      const visited = await visitMatches(context, search, Number.POSITIVE_INFINITY, page => {
        found.push(...page.matches)
        return found.length >= REVERSE_INCLUDES ? 'enough' : undefined
      })
      if (isFailure(visited)) return visited
    }
  }
  return found
}

function listParameters({ source, parameters, target }: IncludeRule) {
  return parameters.map(code => ({ source, code, target }))
}
