import {
  type EverythingType,
  everythingProblem,
  fail,
  isResourceType,
  type Params,
  postedParams,
  resourceTypes,
  type SearchParameter,
  searchParametersOf,
} from '../../fhir/index.ts'
import type { Answer } from '../answer.ts'
import type { Call, Context } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import { typesIn } from '../search/types-in.ts'
import { found, judgeOf } from '../within.ts'
import type { Operation } from './operation.ts'
import { search } from './search.ts'

/**
 * `Patient/[id]/$everything`: what is in the patient's compartment and what it refers to, as a search, so that it
 * keeps to the same reach and pages the same way.
 */
export function everythingOfPatient(context: Context, call: Call<Operation>): Answer | Problem {
  const { id = '' } = call.interaction
  const params = paramsOf(context, call, 'Patient')
  if (isProblem(params)) return params
  const criteria = params.map(([name, value]) =>
    name === '_since' ? (['_lastUpdated', `ge${value}`] as const) : ([name, value] as const),
  )
  const interaction = {
    kind: 'search-compartment',
    compartment: 'Patient',
    id,
    type: '*',
    params: [...criteria, ...typesIn(context.repository, id).flatMap(includeAll)],
  } as const
  return search(context, { ...call, interaction })
}

/** `Encounter/[id]/$everything`: the encounter, what it refers to and what refers to it, as a search. */
export function everythingOfEncounter(context: Context, call: Call<Operation>): Answer | Problem {
  const { id = '' } = call.interaction
  const params = paramsOf(context, call, 'Encounter')
  if (isProblem(params)) return params
  const named = params.filter(([name]) => name === '_type').flatMap(([, value]) => value.split(','))
  if (!named.every(isResourceType))
    return fail({
      problem: 'bad-search',
      code: 'invalid',
      text: 'Cannot read _type: expected resource types of R4',
    })
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
  const interaction = {
    kind: 'search-type',
    type: 'Encounter',
    params: [['_id', id], ...includes],
  } as const
  return search(context, { ...call, interaction })
}

/** The parameters of the address and of the body, once the resource itself may be read. */
function paramsOf(context: Context, call: Call<Operation>, type: EverythingType): Params | Problem {
  const { id = '', params } = call.interaction
  const stored = found(judgeOf(context, call), 'r', type, id, context.repository.find(type, id))
  if (isProblem(stored)) return stored
  if (stored.deleted) return fail({ problem: 'gone', type, id })
  const posted = postedParams(call.body)
  if (isProblem(posted)) return posted
  const all = [...params, ...posted]
  return everythingProblem(type, all) ?? all
}

function includeAll(type: string): Params {
  return searchParametersOf(type).some(it => it.type === 'reference') ? [['_include', `${type}:*`]] : []
}

function referencesTo(type: string, parameters: readonly SearchParameter[]): readonly string[] {
  return parameters.flatMap(({ type: kind, code, target }) =>
    kind === 'reference' && target?.includes(type) ? [code] : [],
  )
}
