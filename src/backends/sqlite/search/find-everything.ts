import {
  listSearchParameters,
  type Params,
  resourceTypes,
  type SearchParameter,
} from '../../../fhir/index.ts'
import {
  type EverythingTarget,
  type Failure,
  type FhirRequest,
  isFailure,
  type Operation,
  type SearchPage,
} from '../../../fhir-api/index.ts'
import type { SqlValue } from '../repository/database.ts'
import type { Repository } from '../repository/repository.ts'
import { findPage } from './find-page.ts'
import { findReferenced } from './includes.ts'
import { parseCriteria } from './parse-criteria.ts'
import type { Steps } from './steps.ts'

/** `$everything` is a search: it has the same access filter and the same paging. */
export function findEverything(
  repository: Repository,
  request: FhirRequest<Operation>,
  of: EverythingTarget,
  after: readonly SqlValue[] | undefined,
): Steps<SearchPage | Failure> {
  return of.type === 'Patient'
    ? findOfPatient(repository, request, of, after)
    : findOfEncounter(repository, request, of)
}

/** The patient's compartment and, on the last page, the resources that it refers to. */
function* findOfPatient(
  repository: Repository,
  request: FhirRequest<Operation>,
  { id, types }: EverythingTarget,
  after: readonly SqlValue[] | undefined,
): Steps<SearchPage | Failure> {
  const { params } = request.interaction
  const criteria = params.map(([name, value]) =>
    name === '_since' ? (['_lastUpdated', `ge${value}`] as const) : ([name, value] as const),
  )
  const compartment = { kind: 'search-compartment', compartment: 'Patient', id, type: '*' } as const
  // Resources that _type leaves out still count as referring.
  const whole = criteria.filter(([name]) => name !== '_type')
  const all = parseCriteria(repository, { ...request, interaction: { ...compartment, params: whole } })
  if (isFailure(all)) return all
  const search = { ...request, interaction: { ...compartment, params: criteria } }
  return yield* findPage(repository, search, after, {
    used: params,
    *include(scope, { next }) {
      return next ? [] : yield* findReferenced(scope, all, request.access, types)
    },
  })
}

/** The encounter, the resources it refers to and those that refer to it, on one page. */
function findOfEncounter(
  repository: Repository,
  request: FhirRequest<Operation>,
  { id, types: named }: EverythingTarget,
): Steps<SearchPage | Failure> {
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
  return findPage(repository, { ...request, interaction }, undefined, {
    used: request.interaction.params,
    isShown: ({ type }) => types.includes(type),
  })
}

function findReferencesTo(type: string, parameters: readonly SearchParameter[]): readonly string[] {
  return parameters.flatMap(({ type: kind, code, target }) =>
    kind === 'reference' && target?.includes(type) ? [code] : [],
  )
}
