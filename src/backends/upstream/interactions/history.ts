import { isProblem, type Params, parseHistory } from '../../../fhir/index.ts'
import { failHidden, type Permission } from '../../../smart/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context, Handler, InteractionOf } from '../call.ts'
import { hiddenNow, unjudged } from '../judge/find.ts'
import { seesAll } from '../judge/sees-all.ts'
import type { Problem } from '../problem.ts'
import { bundleText } from '../search/bundle-text.ts'
import { linkSealing, linksOf } from '../search/links.ts'
import { PAGE } from '../search/pages.ts'
import { atOnce } from '../search/plan.ts'
import { scanVersions } from '../search/scan-versions.ts'
import { turnPage } from '../search/turn-page.ts'
import { passThrough } from '../upstream/pass-through.ts'
import { getting, pathOf, queryOf } from '../upstream/request-of.ts'

type History = InteractionOf<'history-instance' | 'history-type' | 'history-system'>

/** The versions of one resource that are within the reach. */
export const historyOfInstance: Handler<'history-instance'> = async (context, call) => {
  const { type, id } = call.interaction
  const hidden = await hiddenNow(context, call, type, id)
  if (hidden) return hidden
  const answer = await history(context, call, 'r')
  if (answer !== 'nothing' && isProblem(answer)) {
    const unseen = await unjudged(context, call, 'r', type, id, answer)
    return isProblem(unseen) ? unseen : failHidden(call.access, 'r', type, id)
  }
  return answer === 'nothing' ? failHidden(call.access, 'r', type, id) : answer
}

export const historyOfType: Handler<'history-type'> = async (context, call) => {
  const answer = await history(context, call, 's')
  return answer === 'nothing' ? empty(context, call) : answer
}

/** Of all types that the caller reaches at all. */
export const historyOfSystem: Handler<'history-system'> = async (context, call) => {
  const answer = await history(context, call, 's')
  return answer === 'nothing' ? empty(context, call) : answer
}

async function history(
  context: Context,
  asked: Call<History>,
  permission: Permission,
): Promise<Answer | 'nothing' | Problem> {
  const path = pathOf(asked.interaction)
  if (isPassed(asked)) return historyAll(context, asked)
  const turned = turnPage(context, asked, path)
  if (isProblem(turned)) return turned
  const { call, spot } = turned
  if (spot && isPassed(call)) return historyAll(context, call, spot.link)
  const query = parseHistory(call.interaction.params, call.preferences.lenient)
  if (isProblem(query)) return query
  const page = await scanVersions(context, call, permission, {
    ...{ first: withQuery(context, path, atOnce(query)), count: query.count, from: spot },
    ...(call.interaction.kind === 'history-instance' && { of: call.interaction }),
  })
  if (page === 'nothing' || isProblem(page)) return page
  const { items: entry, links, isWhole } = page
  return {
    status: 200,
    headers: {},
    body: bundleText({
      type: 'history',
      total: isWhole ? entry.length : undefined,
      link: linksOf(context, call, path, { params: call.interaction.params, used: query.used }, links),
      entry,
    }),
  }
}

function historyAll(context: Context, call: Call<History>, link?: string): Promise<Answer | Problem> {
  const path = pathOf(call.interaction)
  const { params } = call.interaction
  const request = getting(call, link ?? withQuery(context, path, params))
  return passThrough(context, call, request, linkSealing(context, call, path, params))
}

function empty(context: Context, call: Call<History>): Answer {
  const link = linksOf(
    context,
    call,
    pathOf(call.interaction),
    { params: [], used: call.interaction.params },
    new Map(),
  )
  return { status: 200, headers: {}, body: bundleText({ type: 'history', total: 0, link, entry: [] }) }
}

// Over all types it may hold what is never taken from the upstream (contract 5.8).
function isPassed({ interaction, access }: Call<History>): boolean {
  return (
    interaction.kind !== 'history-system' &&
    seesAll(access) &&
    !interaction.params.some(([name]) => name === PAGE)
  )
}

function withQuery(context: Context, path: string, params: Params): string {
  const kept = params.filter(([name]) => name !== '_format' && name !== '_pretty')
  return kept.length === 0 ? path : `${path}?${queryOf(kept, context.addresses)}`
}
