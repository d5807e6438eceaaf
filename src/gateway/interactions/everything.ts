import {
  everythingProblem,
  fail,
  isProblem,
  isResourceType,
  type Params,
  parseHistory,
  postedParams,
  type Resource,
  resourceTypes,
} from '../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { find } from '../judge/find.ts'
import { seesAll } from '../judge/sees-all.ts'
import { type Problem, tooCostly } from '../problem.ts'
import { bundleText } from '../search/bundle-text.ts'
import { PAGES } from '../search/every-page.ts'
import { fetchPage, type PageJudge, type Released } from '../search/fetch-page.ts'
import { gather, type Part } from '../search/gather.ts'
import { linksOf } from '../search/links.ts'
import { isReached } from '../search/narrow-includes.ts'
import { PAGE } from '../search/pages.ts'
import { AT_ONCE, atOnce } from '../search/plan.ts'
import { turnPage } from '../search/turn-page.ts'
import { getting, pathOf, queryOf } from '../upstream/request-of.ts'
import type { Operation } from './operation.ts'

/** `Patient/[id]/$everything`: of what the upstream gives, what the caller may search or read. */
export async function everything(context: Context, begun: Call<Operation>): Promise<Answer | Problem> {
  const asked = withPosted(begun)
  if (isProblem(asked)) return asked
  const path = pathOf(asked.interaction)
  const turned = turnPage(context, asked, path)
  if (isProblem(turned)) return turned
  const { call, spot } = turned
  const { id = '', params } = call.interaction
  const patient = await find(context, call, 'r', 'Patient', id)
  if (isProblem(patient)) return patient
  if (patient.kind === 'deleted') return fail({ problem: 'gone', type: 'Patient', id })
  const wanted = wantedBy(call, params)
  if (isProblem(wanted)) return wanted
  const first = `${path}?${queryOf(wanted.sent, context.addresses)}`
  const page = await gather(spot, wanted.count, link =>
    fetchEntries(context, call, link === '' ? first : link),
  )
  if (isProblem(page)) return page
  if (page.isEndless) return tooCostly(PAGES * AT_ONCE)
  const { items: entry, links, isWhole } = page
  return {
    status: 200,
    headers: {},
    body: bundleText({
      type: 'searchset',
      total: isWhole ? entry.filter(it => it.search.mode === 'match').length : undefined,
      link: linksOf(context, call, path, { params, used: params.filter(([name]) => name !== PAGE) }, links),
      entry,
    }),
  }
}

/** What of it may be seen, however the upstream came to it. */
const SEEN: PageJudge = {
  isMatch: (it, judge) => judge.reaches('s', it) || judge.reaches('r', it),
  isInclude: (it, judge) => judge.reaches('r', it),
  includes: (_matches, candidates) => candidates,
}

async function fetchEntries(context: Context, call: Call, link: string): Promise<Part<Entry> | Problem> {
  const page = await fetchPage(context, call, getting(call, link), SEEN)
  if (isProblem(page)) return page
  const entryOf =
    (mode: 'match' | 'include') =>
    ({ resource, exact }: Released): Entry => ({
      fullUrl: `${context.baseUrl}/${resource.resourceType}/${resource.id}`,
      resource: exact,
      search: { mode },
    })
  return {
    items: [...page.matches.map(entryOf('match')), ...page.includes.map(entryOf('include'))],
    next: page.links.get('next'),
  }
}

interface Entry {
  readonly fullUrl: string
  readonly resource: Resource
  readonly search: { readonly mode: 'match' | 'include' }
}

/** The parameters of the body are as those of the address: judged, sent and kept in the links of pages. */
function withPosted(call: Call<Operation>): Call<Operation> | Problem {
  const posted = postedParams(call.body)
  if (isProblem(posted)) return posted
  const params = [...call.interaction.params, ...posted]
  return { ...call, interaction: { ...call.interaction, params } }
}

/** How much the caller wants on a page, and what is asked for so that it can be made. */
function wantedBy(
  { access }: Call,
  params: Params,
): { readonly count: number; readonly sent: Params } | Problem {
  const problem = everythingProblem(params)
  if (problem) return problem
  const paged = parseHistory(
    params.filter(([name]) => name === '_since' || name === '_count'),
    false,
  )
  if (isProblem(paged)) return paged
  const asked = params.filter(([name]) => name === '_type').flatMap(([, value]) => value.split(','))
  if (!asked.every(isResourceType))
    return fail({
      problem: 'bad-search',
      code: 'invalid',
      text: 'Cannot read _type: expected resource types of R4',
    })
  const sent = atOnce(paged)
  const { count } = paged
  if (asked.length === 0 && seesAll(access)) return { count, sent }
  const types = (asked.length > 0 ? asked : resourceTypes).filter(
    type => isReached(access, type, 's') || isReached(access, type, 'r'),
  )
  return { count, sent: [...sent, ['_type', types.join(',')]] }
}
