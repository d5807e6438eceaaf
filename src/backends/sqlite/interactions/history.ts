import { parseHistory } from '../../../fhir/index.ts'
import { buildUrl, bundleJson } from '../../../fhir-api/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, Handler, InteractionOf } from '../call.ts'
import { historyEntry } from '../history/entry.ts'
import { countVersions, type HistoryGround, runHistory } from '../history/run-history.ts'
import { isProblem, type Problem } from '../problem.ts'
import { nextLink, turnPage } from '../search/turn-page.ts'
import { typesIn } from '../search/types-in.ts'
import { found, judgeOf } from '../within.ts'

type History = InteractionOf<'history-instance' | 'history-type' | 'history-system'>

/** The versions of one resource that are within the reach. */
export const historyOfInstance: Handler<'history-instance'> = (context, call) => {
  const { type, id } = call.interaction
  const current = context.repository.find(type, id)
  const judged = found(judgeOf(context, call), 'r', type, id, current)
  if (isProblem(judged) && (context.versionAccess === 'current' || judged.problem === 'absent' || !current))
    return judged
  const answer = history(context, call, `${type}/${id}/_history`, turned => ({
    parts: [{ type, filter: turned.access.filterFor(type, 'r') }],
    rid: current?.rid,
  }))
  // If no version is visible, nothing is revealed, not even that the history is long.
  return isProblem(judged) && (isProblem(answer) || answer.shown === 0) ? judged : answer
}

export const historyOfType: Handler<'history-type'> = (context, call) => {
  const { type } = call.interaction
  return history(context, call, `${type}/_history`, turned => ({
    parts: [{ type, filter: turned.access.filterFor(type, 's') }],
  }))
}

/** Of all types that the caller reaches at all. */
export const historyOfSystem: Handler<'history-system'> = (context, call) =>
  history(context, call, '_history', turned => ({
    parts: typesIn(context.repository).map(type => ({
      type,
      filter: turned.access.filterFor(type, 's'),
    })),
  }))

function history<I extends History>(
  context: Context,
  asked: Call<I>,
  path: string,
  groundOf: (call: Call<I>) => HistoryGround,
): (Answer & { readonly shown: number }) | Problem {
  const address = `${context.baseUrl}/${path}`
  const turned = turnPage(context, asked, address)
  if (isProblem(turned)) return turned
  const { call, after } = turned
  const query = parseHistory(call.interaction.params, call.preferences.lenient)
  if (isProblem(query)) return query
  const ground = groundOf(call)
  const page = runHistory(context, ground, query, after)
  if (isProblem(page)) return page
  const { versions, next } = page
  const self = { relation: 'self', url: buildUrl(address, query.used) } as const
  const body = bundleJson({
    type: 'history',
    total: after === undefined && !next ? versions.length : countVersions(context, ground, query),
    links: next ? [self, nextLink(context, call, address, next)] : [self],
    entries: versions.map(version => historyEntry(context.baseUrl, version)),
  })
  return { status: 200, body, shown: versions.length }
}
