import {
  everythingProblem,
  isProblem,
  isResourceType,
  type Params,
  postedParams,
  resourceTypes,
} from '../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { find } from '../judge/find.ts'
import { seesAll } from '../judge/sees-all.ts'
import type { Problem } from '../problem.ts'
import { bundleText } from '../search/bundle-text.ts'
import { fetchPage } from '../search/fetch-page.ts'
import { linksOf } from '../search/links.ts'
import { isReached } from '../search/narrow-includes.ts'
import { PAGE } from '../search/pages.ts'
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
  if (patient.kind === 'deleted') return { problem: 'gone', type: 'Patient', id }
  const narrowed = narrowedParams(call, params)
  if (isProblem(narrowed)) return narrowed
  const page = await fetchPage(
    context,
    call,
    getting(call, spot?.link ?? `${path}?${queryOf(narrowed as Params, context.addresses)}`),
    {
      isMatch: (it, judge) => judge.reaches('s', it) || judge.reaches('r', it),
      isInclude: (it, judge) => judge.reaches('r', it),
      includes: (_matches, candidates) => candidates,
    },
  )
  if (isProblem(page)) return page
  return {
    status: 200,
    headers: {},
    body: bundleText({
      type: 'searchset',
      total: page.isWhole ? page.matches.length : undefined,
      link: linksOf(
        context,
        call,
        path,
        { params, used: params.filter(([name]) => name !== PAGE) },
        page.links,
      ),
      entry: [...page.matches, ...page.includes].map(({ resource, exact }, at) => ({
        fullUrl: `${context.baseUrl}/${resource.resourceType}/${resource.id}`,
        resource: exact,
        search: { mode: at < page.matches.length ? 'match' : 'include' },
      })),
    }),
  }
}

/** The parameters of the body are as those of the address: judged, sent and kept in the links of pages. */
function withPosted(call: Call<Operation>): Call<Operation> | Problem {
  const posted = postedParams(call.body)
  if (isProblem(posted)) return posted
  const params = [...call.interaction.params, ...posted]
  return { ...call, interaction: { ...call.interaction, params } }
}

function narrowedParams({ access }: Call, params: Params): Params | Problem {
  const problem = everythingProblem(params)
  if (problem) return problem
  const asked = params.filter(([name]) => name === '_type').flatMap(([, value]) => value.split(','))
  if (!asked.every(isResourceType))
    return {
      problem: 'bad-search',
      code: 'invalid',
      text: 'Cannot read _type: expected resource types of R4',
    }
  const others = params.filter(([name]) => name === '_since' || name === '_count')
  if (asked.length === 0 && seesAll(access)) return others
  const types = (asked.length > 0 ? asked : resourceTypes).filter(
    type => isReached(access, type, 's') || isReached(access, type, 'r'),
  )
  return [...others, ['_type', types.join(',')]]
}
