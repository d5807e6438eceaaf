import { parseHistory } from '../../../fhir/index.ts'
import { getPath, type History, respondWithHistory } from '../../../fhir-api/index.ts'
import { toAnswer } from '../answer.ts'
import type { Call, Context, Handler } from '../call.ts'
import { findHistory } from '../history/find-history.ts'
import { isProblem, type Problem } from '../problem.ts'
import { turnPage } from '../search/turn-page.ts'
import { found, judgeOf } from '../within.ts'

/** A history as an entry of a Bundle. */
export const history: Handler<History['kind']> = (context, begun) => {
  const path = getPath(begun.interaction)
  const turned = turnPage(context, begun, path)
  if (isProblem(turned)) return turned
  const { call, after } = turned
  const query = parseHistory(call.interaction.params, call.preferences.lenient)
  if (isProblem(query)) return query
  const hidden = findHidden(context, call)
  if (hidden && context.versionAccess === 'current') return hidden
  const page = findHistory(context, call, query, after)
  if (hidden && (isProblem(page) || page.versions.length === 0)) return hidden
  return isProblem(page) ? page : toAnswer(respondWithHistory(context, call, path, query.used, page))
}

function findHidden(context: Context, call: Call<History>): Problem | undefined {
  const { interaction } = call
  if (interaction.kind !== 'history-instance') return undefined
  const { type, id } = interaction
  const current = found(judgeOf(context, call), 'r', type, id, context.repository.find(type, id))
  return isProblem(current) ? current : undefined
}
