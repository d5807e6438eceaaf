import { limits, parseQuery } from '../../fhir/index.ts'
import type { SearchEntry } from '../../fhir-api/index.ts'
import type { Call, Context } from './call.ts'
import { isProblem } from './problem.ts'
import { toEntry } from './search/entry.ts'
import { createQueryContext } from './search/query-context.ts'
import { runQuery } from './search/run-query.ts'

/** DocumentReferences within what the caller may read that name a Binary. */
export function findDocuments(
  { repository, baseUrl }: Context,
  { access }: Call,
  id: string,
): readonly SearchEntry[] {
  const { database } = repository
  const named = [['location', `Binary/${id},${baseUrl}/Binary/${id}`]] as const
  const query = parseQuery(['DocumentReference'], named, baseUrl, false)
  if (isProblem(query)) return []
  const ground = { database, scene: createQueryContext(repository, access, 'r') }
  const { hits } = runQuery(ground, { ...query, count: limits.DOCUMENTS_OF_BINARY }, undefined)
  return hits.map(hit => toEntry(database, hit))
}
