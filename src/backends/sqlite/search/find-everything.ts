import {
  listSearchParameters,
  type Params,
  resourceTypes,
  type SearchParameter,
} from '../../../fhir/index.ts'
import type { EverythingTarget, Operation, SearchPage } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import type { SqlValue } from '../repository/database.ts'
import { findPage, parseCriteria } from './find-page.ts'
import { findReferenced } from './includes.ts'

/** `$everything`: a search, so that it keeps to the same access and pages the same way. */
export function findEverything(
  context: Context,
  call: Call<Operation>,
  of: EverythingTarget,
  after: readonly SqlValue[] | undefined,
): SearchPage | Problem {
  return of.type === 'Patient' ? findOfPatient(context, call, of, after) : findOfEncounter(context, call, of)
}

/** What is in the patient's compartment and what it refers to. What is referred to comes once, with the last page. */
function findOfPatient(
  context: Context,
  call: Call<Operation>,
  { id, types }: EverythingTarget,
  after: readonly SqlValue[] | undefined,
): SearchPage | Problem {
  const { params } = call.interaction
  const criteria = params.map(([name, value]) =>
    name === '_since' ? (['_lastUpdated', `ge${value}`] as const) : ([name, value] as const),
  )
  const compartment = { kind: 'search-compartment', compartment: 'Patient', id, type: '*' } as const
  // What is left out by _type includes what it refers to all the same.
  const whole = criteria.filter(([name]) => name !== '_type')
  const all = parseCriteria(context, { ...call, interaction: { ...compartment, params: whole } })
  if (isProblem(all)) return all
  const search = { ...call, interaction: { ...compartment, params: criteria } }
  return findPage(context, search, after, {
    used: params,
    include: (ground, _query, { next }) => (next ? [] : findReferenced(ground, all, call.access, types)),
  })
}

/** The encounter, what it refers to and what refers to it, on one page. */
function findOfEncounter(
  context: Context,
  call: Call<Operation>,
  { id, types: named }: EverythingTarget,
): SearchPage | Problem {
  const types = named.length > 0 ? named : resourceTypes
  const includes = types.flatMap(
    (type): Params => [
      ...findReferencesTo(type, listSearchParameters('Encounter')).map(
        code => ['_include', `Encounter:${code}:${type}`] as const,
      ),
      ...findReferencesTo('Encounter', listSearchParameters(type)).map(
        code => ['_revinclude', `${type}:${code}`] as const,
      ),
    ],
  )
  const interaction = { kind: 'search-type', type: 'Encounter', params: [['_id', id], ...includes] } as const
  return findPage(context, { ...call, interaction }, undefined, {
    used: call.interaction.params,
    isShown: ({ type }) => types.includes(type),
  })
}

function findReferencesTo(type: string, parameters: readonly SearchParameter[]): readonly string[] {
  return parameters.flatMap(({ type: kind, code, target }) =>
    kind === 'reference' && target?.includes(type) ? [code] : [],
  )
}
