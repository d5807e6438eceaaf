import { fail, type Params, parseQuery } from '../../../fhir/index.ts'
import type { Call, Context } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import type { Stored } from '../repository/stored.ts'
import { runQuery } from '../search/run-query.ts'
import { sceneOf } from '../search/scene.ts'
import { tooWide } from '../search/width.ts'

/**
 * The one resource that a conditional interaction speaks of; undefined when none matches. It is a search: only what
 * the caller reaches by searching is looked at, so that it tells nothing about the rest (contract 5.3).
 */
export function matchOf(
  context: Context,
  call: Call,
  type: string,
  params: Params,
): Stored | Problem | undefined {
  const work = () => findMatch(context, call, type, params)
  return context.reads ? context.reads.spend(work) : work()
}

function findMatch(
  { repository, baseUrl }: Context,
  { access }: Call,
  type: string,
  params: Params,
): Stored | Problem | undefined {
  // Lenient would be dangerous here: an ignored parameter makes the condition match more.
  const query = parseQuery([type], params, baseUrl, false)
  if (isProblem(query)) return query
  const wide = tooWide(query)
  if (wide) return wide
  const scene = sceneOf(repository, access, 's')
  const { hits, next } = runQuery(
    { database: repository.database, scene },
    { ...query, sort: [], count: 1 },
    undefined,
  )
  const [hit] = hits
  if (next) return fail({ problem: 'multiple-matches', type })
  return hit && repository.find(type, hit.id)
}
