import {
  createOutcome,
  fail,
  isProblem,
  isRecord,
  limits,
  parseLastN,
  readResourceBody,
  selectLastN,
} from '../../fhir/index.ts'
import { buildUrl, bundleJson, entryJson } from '../bundle-json.ts'
import type { Handler } from '../context.ts'
import { isFailure, toResponse } from '../failure.ts'
import { getPath } from '../request.ts'
import { addPostedParams, everythingOf } from './everything.ts'
import { searchFor } from './search.ts'

/**
 * `$validate`: what is wrong with a resource by the R4 definitions, without the backend: the words of an upstream could
 * not be checked. The status is 200 either way (R4 resource-operation-validate).
 */
const validateResource: Handler<'operation'> = async (_context, { interaction, body }) => {
  const { type = '' } = interaction
  const resource = readResourceBody(findResource(body), type)
  if (!isProblem(resource)) return { status: 200, body: JSON.stringify(VALID) }
  return resource.problem === 'invalid-resource' ? { ...toResponse(resource), status: 200 } : resource
}

/** The resource itself, or the parameter of that name. */
function findResource(body: unknown): unknown {
  if (!isRecord(body) || body.resourceType !== 'Parameters' || !Array.isArray(body.parameter)) return body
  return body.parameter.find(it => isRecord(it) && it.name === 'resource')?.resource
}

const { resourceType, issue } = createOutcome('informational', 'The resource is valid')

const VALID = { resourceType, issue: issue.map(it => ({ ...it, severity: 'information' })) }

/**
 * `Observation/$lastn`: the newest Observations of each code, chosen here among those that the caller finds. An upstream
 * would choose among all of its data, and what it leaves out would tell of them.
 */
const lastN: Handler<'operation'> = async (context, begun) => {
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

/** The operations that are performed here, by name and level. */
const OPERATIONS: Readonly<Record<string, Handler<'operation'>>> = {
  'Patient/id/$everything': everythingOf('Patient'),
  'Encounter/id/$everything': everythingOf('Encounter'),
  'Observation/$lastn': lastN,
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
