import { isInCareRange, type Params, type Query } from '../../../fhir/index.ts'
import {
  type Failure,
  type FhirRequest,
  isFailure,
  type Search,
  type SearchPage,
} from '../../../fhir-api/index.ts'
import type { SqlValue } from '../repository/database.ts'
import type { Repository } from '../repository/repository.ts'
import { toEntry } from '../stored-version.ts'
import { findIncludes } from './includes.ts'
import { findCareRange, findUsed, parseCriteria } from './parse-criteria.ts'
import { countCheaply, countQuery, type FoundRows, type Hit, runQuery } from './run-query.ts'
import { createSearchScope, type SearchScope } from './search-scope.ts'
import type { Steps } from './steps.ts'

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
  return {
    ...page,
    matches: hits.map(hit => toEntry(scope.database, hit)),
    includes: included.filter(isInCare).map(hit => toEntry(scope.database, hit)),
    total: yield* findTotal(scope, query, { ...found, hits }, after === undefined),
    cursors: found.next ? new Map([['next', found.next]]) : NONE,
  }
}

const NONE: SearchPage['cursors'] = new Map()

/** The total is given where it was requested, is known already, or is cheap to count. */
function* findTotal(
  scope: SearchScope,
  query: Query,
  found: FoundRows,
  isFirst: boolean,
): Steps<number | undefined> {
  if (query.total === 'none') return undefined
  if (isFirst && !found.next) return found.hits.length
  if (query.total === 'accurate') return yield* countQuery(scope, query)
  return yield* countCheaply(scope, query, COUNTED)
}
