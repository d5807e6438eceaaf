import { fail, limits, parseLastN, selectLastN } from '../../fhir/index.ts'
import { buildUrl, bundleJson, entryJson } from '../bundle-json.ts'
import type { Handler } from '../context.ts'
import { isFailure } from '../failure.ts'
import { getPath } from '../request.ts'
import { addPostedParams, createEverything } from './everything.ts'
import { searchFor } from './search.ts'
import { validateResource } from './validate.ts'

/**
 * `Observation/$lastn`: the newest Observations of each code, among those within the access. An upstream would choose among
 * all of its data, and the Observations that it leaves out would reveal others.
 */
const performLastN: Handler<'operation'> = async (context, original) => {
  const { baseUrl, session } = context
  const request = addPostedParams(original)
  if (isFailure(request)) return request
  const { interaction } = request
  const lastN = parseLastN(interaction.params)
  if (isFailure(lastN)) return lastN
  const found = await session.collect(searchFor(request, 'Observation', lastN.criteria), {
    matches: limits.LAST_N_OBSERVATIONS,
    characters: limits.LAST_N_CHARACTERS,
  })
  if (found === 'too-many') return TOO_MANY
  if (isFailure(found)) return found
  const parsed = found.map(entry => ({ entry, resource: entry.parse() }))
  const newest = selectLastN(parsed, ({ resource }) => resource, lastN.max, baseUrl)
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

/** The operations that the API performs, by level and name. */
const OPERATIONS: Readonly<Record<string, Handler<'operation'>>> = {
  'Patient/id/$everything': createEverything('Patient'),
  'Encounter/id/$everything': createEverything('Encounter'),
  'Observation/$lastn': performLastN,
  'type/$validate': validateResource,
  'type/id/$validate': validateResource,
}

export const operation: Handler<'operation'> = async (context, request) => {
  const { name, type, id } = request.interaction
  const level = id === undefined ? '' : '/id'
  const handler = OPERATIONS[`${type}${level}/${name}`] ?? (type && OPERATIONS[`type${level}/${name}`])
  if (handler) return handler(context, request)
  return context.session.operation?.(request) ?? fail({ problem: 'unsupported-operation', name })
}
