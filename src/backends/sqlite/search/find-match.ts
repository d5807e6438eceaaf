import { fail, type Params, parseQuery } from '../../../fhir/index.ts'
import type { ConditionMatch, FhirRequest } from '../../../fhir-api/index.ts'
import type { Context } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import { SqliteVersion } from '../stored-version.ts'
import { createQueryContext } from './query-context.ts'
import { runQuery } from './run-query.ts'
import { findExcess } from './width.ts'

/** Finds the one resource that a condition is about. */
export function findMatch(
  { repository, baseUrl }: Context,
  { access }: FhirRequest,
  type: string,
  params: Params,
): ConditionMatch | Problem {
  // Lenient would be dangerous here: an ignored parameter makes the condition match more.
  const query = parseQuery([type], params, baseUrl, false)
  if (isProblem(query)) return query
  const wide = findExcess(query)
  if (wide) return wide
  const scene = createQueryContext(repository, access, 's')
  const { hits, next } = runQuery(
    { database: repository.database, scene },
    { ...query, sort: [], count: 1 },
    undefined,
  )
  const [hit] = hits
  if (next) return fail({ problem: 'multiple-matches', type })
  const stored = hit && repository.find(type, hit.id)
  return { match: stored && new SqliteVersion(stored, repository.database) }
}
