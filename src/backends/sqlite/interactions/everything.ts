import {
  type EverythingType,
  everythingProblem,
  fail,
  type Params,
  postedParams,
  resourceTypes,
  type SearchParameter,
  searchParametersOf,
} from '../../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import { includesOf, referredTo } from '../search/includes.ts'
import { nextLink, turnPage } from '../search/turn-page.ts'
import { found, judgeOf } from '../within.ts'
import type { Operation } from './operation.ts'
import { answerSearch, namedTypes, queryOf } from './search.ts'

/**
 * `Patient/[id]/$everything`: what is in the patient's compartment and what it refers to, as a search, so that it
 * keeps to the same reach and pages the same way. What is referred to comes once, with the last page.
 */
export function everythingOfPatient(context: Context, begun: Call<Operation>): Answer | Problem {
  const address = `${context.baseUrl}/Patient/${begun.interaction.id}/$everything`
  const posted = withPosted(begun)
  if (isProblem(posted)) return posted
  const turned = turnPage(context, posted, address)
  if (isProblem(turned)) return turned
  const { call, after } = turned
  const { id = '' } = call.interaction
  const params = paramsOf(context, call, 'Patient')
  if (isProblem(params)) return params
  const named = namedTypes(params)
  if (isProblem(named)) return named
  const criteria = params.map(([name, value]) =>
    name === '_since' ? (['_lastUpdated', `ge${value}`] as const) : ([name, value] as const),
  )
  const compartment = { kind: 'search-compartment', compartment: 'Patient', id, type: '*' } as const
  const search = { ...call, interaction: { ...compartment, params: criteria } }
  // What is left out by _type brings along what it refers to all the same.
  const whole = criteria.filter(([name]) => name !== '_type')
  const all = queryOf(context, { ...call, interaction: { ...compartment, params: whole } })
  if (isProblem(all)) return all
  return answerSearch(context, search, after, {
    address,
    asked: params,
    linkTo: next => nextLink(context, call, address, next),
    include: (ground, _query, { next }) => (next ? [] : referredTo(ground, all, call.access, named)),
  })
}

/** `Encounter/[id]/$everything`: the encounter, what it refers to and what refers to it, as a search with one page. */
export function everythingOfEncounter(context: Context, call: Call<Operation>): Answer | Problem {
  const posted = withPosted(call)
  if (isProblem(posted)) return posted
  const { id = '' } = call.interaction
  const params = paramsOf(context, posted, 'Encounter')
  if (isProblem(params)) return params
  const named = namedTypes(params)
  if (isProblem(named)) return named
  const types = named.length > 0 ? named : resourceTypes
  const includes = types.flatMap(
    (type): Params => [
      ...referencesTo(type, searchParametersOf('Encounter')).map(
        code => ['_include', `Encounter:${code}:${type}`] as const,
      ),
      ...referencesTo('Encounter', searchParametersOf(type)).map(
        code => ['_revinclude', `${type}:${code}`] as const,
      ),
    ],
  )
  const interaction = { kind: 'search-type', type: 'Encounter', params: [['_id', id], ...includes] } as const
  const address = `${context.baseUrl}/Encounter/${id}/$everything`
  return answerSearch(context, { ...call, interaction }, undefined, {
    address,
    asked: params,
    linkTo: next => nextLink(context, call, address, next),
    include: ({ database, scene }, query, { hits }) =>
      includesOf(database, scene, call.access, query.includes, hits),
    isShown: ({ type }) => types.includes(type),
  })
}

/** The parameters, once the resource itself may be read. */
function paramsOf(context: Context, call: Call<Operation>, type: EverythingType): Params | Problem {
  const { id = '', params } = call.interaction
  const stored = found(judgeOf(context, call), 'r', type, id, context.repository.find(type, id))
  if (isProblem(stored)) return stored
  if (stored.deleted) return fail({ problem: 'gone', type, id })
  return everythingProblem(type, params) ?? params
}

/** The parameters of the body are as those of the address. */
function withPosted(call: Call<Operation>): Call<Operation> | Problem {
  const posted = postedParams(call.body)
  if (isProblem(posted)) return posted
  return { ...call, interaction: { ...call.interaction, params: [...call.interaction.params, ...posted] } }
}

function referencesTo(type: string, parameters: readonly SearchParameter[]): readonly string[] {
  return parameters.flatMap(({ type: kind, code, target }) =>
    kind === 'reference' && target?.includes(type) ? [code] : [],
  )
}
