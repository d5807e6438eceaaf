import { isProblem, limits, parseLastN, selectLastN } from '../../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import { addressOf, bundleText } from '../search/bundle-text.ts'
import { collect, searchFor } from '../search/collect.ts'
import { pathOf } from '../upstream/request-of.ts'
import { withPosted } from './everything.ts'
import type { Operation } from './operation.ts'

/**
 * `Observation/$lastn`: the newest Observations of each code, chosen here among those that the caller finds. The
 * upstream would choose among all of its data, and what it leaves out would tell of them.
 */
export async function lastN(context: Context, begun: Call<Operation>): Promise<Answer | Problem> {
  const call = withPosted(begun)
  if (isProblem(call)) return call
  const asked = parseLastN(call.interaction.params)
  if (isProblem(asked)) return asked
  const criteria = [...asked.criteria, ['_count', '500'] as const]
  const found = await collect(context, searchFor(call, 'Observation', criteria), limits.LAST_N_OBSERVATIONS)
  if (isProblem(found)) return found
  const newest = selectLastN(found, ({ resource }) => resource, asked.max, context.baseUrl)
  const address = `${context.baseUrl}${pathOf(call.interaction)}`
  return {
    status: 200,
    headers: {},
    body: bundleText({
      type: 'searchset',
      total: newest.length,
      link: [{ relation: 'self', url: addressOf(address, call.interaction.params) }],
      entry: newest.map(({ resource, exact }) => ({
        fullUrl: `${context.baseUrl}/Observation/${resource.id}`,
        resource: exact,
        search: { mode: 'match' },
      })),
    }),
  }
}
