import type { CollectLimit, Search, SearchEntry } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import { toEntry } from './entry.ts'
import { parseCriteria } from './find-page.ts'
import { createQueryContext } from './query-context.ts'
import { runQuery } from './run-query.ts'
import { findExcess } from './width.ts'

/** All matches of a search of one type. */
export function collect(
  context: Context,
  call: Call<Search>,
  { matches, characters }: CollectLimit,
): readonly SearchEntry[] | 'too-many' | Problem {
  const { repository } = context
  const { database } = repository
  const query = parseCriteria(context, call)
  if (isProblem(query)) return query
  const wide = findExcess(query)
  if (wide) return wide
  const ground = { database, scene: createQueryContext(repository, call.access, 's') }
  const { hits, next } = runQuery(ground, { ...query, count: matches }, undefined, characters)
  return next ? 'too-many' : hits.map(hit => toEntry(database, hit))
}
