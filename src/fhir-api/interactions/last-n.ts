import { fail, limits, parseLastN, selectLastN } from '../../fhir/index.ts'
import { buildUrl, bundleJson, entryJson } from '../bundle-json.ts'
import type { Handler } from '../context.ts'
import { isFailure } from '../failure.ts'
import { getPath } from '../path.ts'
import { addPostedParams } from './everything.ts'
import { searchFor } from './search.ts'

/**
 * `Observation/$lastn`: the newest Observations of each code, chosen here among those that the caller finds. An upstream
 * would choose among all of its data, and what it leaves out would tell of them.
 */
export const lastN: Handler<'operation'> = async (context, begun) => {
  const { baseUrl, session } = context
  const request = addPostedParams(begun)
  if (isFailure(request)) return request
  const { interaction } = request
  const asked = parseLastN(interaction.params)
  if (isFailure(asked)) return asked
  const found = await session.collect(searchFor(request, 'Observation', asked.criteria), {
    matches: limits.LAST_N_OBSERVATIONS,
    characters: limits.LAST_N_CHARACTERS,
  })
  if (found === 'too-many') return TOO_MANY
  if (isFailure(found)) return found
  const parsed = found.map(entry => ({ entry, resource: entry.parse() }))
  const newest = selectLastN(parsed, ({ resource }) => resource, asked.max, baseUrl)
  return {
    status: 200,
    body: bundleJson({
      type: 'searchset',
      total: newest.length,
      links: [{ relation: 'self', url: buildUrl(baseUrl + getPath(interaction), interaction.params) }],
      entries: newest.map(({ entry }) =>
        entryJson({
          fullUrl: `${baseUrl}/Observation/${entry.id}`,
          resource: entry.text,
          search: { mode: 'match' },
        }),
      ),
    }),
  }
}

const TOO_MANY = fail({
  problem: 'too-costly',
  text: `Cannot choose among more than ${limits.LAST_N_OBSERVATIONS} Observations or ${limits.LAST_N_CHARACTERS} characters: name the patient or a code`,
})
