import {
  fail,
  limits,
  parseLastN,
  parseQuery,
  postedParams,
  type Resource,
  selectLastN,
} from '../../../fhir/index.ts'
import { buildUrl, bundleJson, entryJson } from '../../../fhir-api/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import { type Hit, runQuery } from '../search/run-query.ts'
import { sceneOf } from '../search/scene.ts'
import { tooWide } from '../search/width.ts'
import type { Operation } from './operation.ts'

function readHit({ content }: Hit): Resource {
  return JSON.parse(content)
}

/** `Observation/$lastn`: the newest Observations of each code, among those that the caller finds. */
export function lastN(context: Context, call: Call<Operation>): Answer | Problem {
  const { repository, baseUrl } = context
  const posted = postedParams(call.body)
  if (isProblem(posted)) return posted
  const asked = parseLastN([...call.interaction.params, ...posted])
  if (isProblem(asked)) return asked
  const query = parseQuery(['Observation'], asked.criteria, baseUrl, call.preferences.lenient)
  if (isProblem(query)) return query
  const wide = tooWide(query)
  if (wide) return wide
  const scene = sceneOf(repository, call.access, 's')
  const ground = { database: repository.database, scene }
  const { hits, next } = runQuery(
    ground,
    { ...query, count: limits.LAST_N_OBSERVATIONS },
    undefined,
    limits.LAST_N_CHARACTERS,
  )
  if (next)
    return fail({
      problem: 'too-costly',
      text: `Cannot choose among more than ${limits.LAST_N_OBSERVATIONS} Observations or ${limits.LAST_N_CHARACTERS} characters: name the patient or a code`,
    })
  const found = hits.map(hit => ({ hit, resource: readHit(hit) }))
  const newest = selectLastN(found, ({ resource }) => resource, asked.max, baseUrl)
  return {
    status: 200,
    body: bundleJson({
      type: 'searchset',
      total: newest.length,
      links: [{ relation: 'self', url: buildUrl(`${baseUrl}/Observation/$lastn`, call.interaction.params) }],
      entries: newest.map(({ hit }) =>
        entryJson({
          fullUrl: `${baseUrl}/Observation/${hit.id}`,
          resource: hit.content,
          search: { mode: 'match' },
        }),
      ),
    }),
  }
}
