import { isFailure } from '../../../core/index.ts'
import {
  failFor,
  isInCareRange,
  limits,
  listSearchParameters,
  type Params,
  parseQuery,
  resourceTypes,
  type SearchParameter,
} from '../../../fhir/index.ts'
import type {
  CollectLimit,
  ConditionMatch,
  EverythingTarget,
  Failure,
  FhirRequest,
  Operation,
  Search,
  SearchEntry,
  SearchPage,
} from '../../../fhir-api/index.ts'
import type { SqlValue } from '../repository/database.ts'
import type { Repository } from '../repository/repository.ts'
import { SqliteVersion } from '../stored-version.ts'
import { toContents, toEntry } from './entries.ts'
import { findIncludes, findReferenced } from './includes.ts'
import { type Criteria, findCareRange, findUsed, parseBounded, parseCriteria } from './parse-criteria.ts'
import { countCheaply, countQuery, type FoundRows, type Hit, runQuery } from './planner/run-query.ts'
import {
  countStatements,
  createSearchScope,
  finish,
  finishWithin,
  type SearchScope,
  type Steps,
} from './planner/search-scope.ts'

/** The highest total that is counted without being requested. */
const COUNTED = 5_000

/** How a page differs from that of a plain search. */
interface PageOptions {
  /** The parameters of the self link, where they are not those that were understood. */
  readonly used?: Params
  /** Finds the resources that are included on this page. */
  readonly include?: (scope: SearchScope, found: FoundRows) => Steps<readonly Hit[] | Failure>
  /** Whether a match is shown itself, or only the resources that are included with it. */
  readonly isShown?: (hit: Hit) => boolean
}

/** The page of a search that begins after a row. */
export function* findPage(
  repository: Repository,
  request: FhirRequest<Search>,
  after: readonly SqlValue[] | undefined,
  options: PageOptions = {},
): Steps<SearchPage | Failure> {
  const { interaction, access } = request
  const care = findCareRange(interaction)
  if (care && isFailure(care)) return care
  const query = parseCriteria(repository, request)
  if (isFailure(query)) return query
  const compartment = interaction.kind === 'search-compartment' ? interaction.id : undefined
  const scope = { ...createSearchScope(repository, access, 's'), compartment, care }
  const page = { used: options.used ?? findUsed(interaction, query), shape: query.shape }
  if (query.shape.summary === 'count' || query.count === 0)
    return { ...page, matches: [], includes: [], total: yield* countQuery(scope, query), cursors: NONE }
  const found = yield* runQuery(scope, query, after)
  const included = options.include
    ? yield* options.include(scope, found)
    : yield* findIncludes(scope, access, query.includes, found.hits)
  if (isFailure(included)) return included
  const isInCare = (hit: Hit) => !care || isInCareRange(JSON.parse(hit.content), care, repository.baseUrl)
  const hits = options.isShown ? found.hits.filter(options.isShown) : found.hits
  const includes = included.filter(isInCare)
  return {
    ...page,
    matches: hits.map(hit => toEntry(scope.database, hit)),
    includes: includes.map(hit => toEntry(scope.database, hit)),
    contents: toContents(scope.database, [...hits, ...includes]),
    total: yield* findTotal(scope, query, { ...found, hits }, after === undefined),
    cursors: found.next ? new Map([['next', found.next]]) : NONE,
  }
}

const NONE: SearchPage['cursors'] = new Map()

/** The total is given where it was requested, is known already, or is cheap to count. */
function* findTotal(
  scope: SearchScope,
  query: Criteria,
  found: FoundRows,
  isFirst: boolean,
): Steps<number | undefined> {
  if (query.total === 'none') return undefined
  if (isFirst && !found.next) return found.hits.length
  if (query.total === 'accurate') return yield* countQuery(scope, query)
  return query.isCountable ? yield* countCheaply(scope, query, COUNTED) : undefined
}

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

/** All matches of a search of one type. */
export function* collectMatches(
  repository: Repository,
  request: FhirRequest<Search>,
  { matches, characters }: CollectLimit,
): Steps<readonly SearchEntry[] | 'too-many' | Failure> {
  const query = parseCriteria(repository, request)
  if (isFailure(query)) return query
  const scope = createSearchScope(repository, request.access, 's')
  const { hits, next } = yield* runQuery(scope, { ...query, count: matches }, undefined, characters)
  return next ? 'too-many' : hits.map(hit => toEntry(repository.database, hit))
}

/** The one resource that meets a condition, found by reading at most the given number of rows: nothing else is served meanwhile. */
export function findConditionMatch(
  repository: Repository,
  { access, work, chains }: Pick<FhirRequest, 'access' | 'work' | 'chains'>,
  type: string,
  params: Params,
  mostRows?: number,
): ConditionMatch | Failure {
  // Never lenient: an ignored parameter makes the condition match more.
  const query = parseBounded([type], params, { baseUrl: repository.baseUrl, lenient: false, work, chains })
  if (isFailure(query)) return query
  const scope = createSearchScope(repository, access, 's')
  const search = runQuery(scope, { ...query, sort: [], count: 1 }, undefined)
  const found = finishWithin(countStatements(repository.database, search, work), work, mostRows)
  if (!found || isFailure(found)) return found ?? TOO_COSTLY
  const { hits, next } = found
  if (next) return failFor('multiple-matches', { type })
  const [hit] = hits
  const stored = hit && repository.find(type, hit.id)
  return { match: stored && new SqliteVersion(stored, repository.database) }
}

const TOO_COSTLY = failFor('condition-too-wide')

/** The DocumentReferences that the caller may read and that name a Binary. */
export function findDocuments(
  repository: Repository,
  { access, work }: FhirRequest,
  binaryId: string,
): readonly SearchEntry[] {
  const { database, baseUrl } = repository
  const named = [['location', `Binary/${binaryId},${baseUrl}/Binary/${binaryId}`]] as const
  const query = parseQuery(['DocumentReference'], named, { baseUrl, lenient: false, work })
  if (isFailure(query)) return []
  const scope = createSearchScope(repository, access, 'r')
  const search = runQuery(scope, { ...query, count: limits.DOCUMENTS_OF_BINARY }, undefined)
  const { hits } = database.snapshot(() => finish(search))
  return hits.map(hit => toEntry(database, hit))
}
