import { fail, limits, type Params, parseQuery } from '../../../fhir/index.ts'
import type {
  CollectLimit,
  ConditionMatch,
  Failure,
  FhirRequest,
  Search,
  SearchEntry,
} from '../../../fhir-api/index.ts'
import { isFailure } from '../../../fhir-api/index.ts'
import type { Access } from '../../../smart/index.ts'
import { CONDITION_STEPS } from '../limits.ts'
import type { Repository } from '../repository/repository.ts'
import { SqliteVersion, toEntry } from '../stored-version.ts'
import { parseBounded, parseCriteria } from './parse-criteria.ts'
import { runQuery } from './run-query.ts'
import { createSearchScope } from './search-scope.ts'
import { finish, finishWithin, type Steps } from './steps.ts'

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

/** The one resource that meets a condition, found in at most so many steps: nothing else is served meanwhile. */
export function findMatch(
  repository: Repository,
  access: Access,
  type: string,
  params: Params,
  steps = CONDITION_STEPS,
): ConditionMatch | Failure {
  // Never lenient: an ignored parameter makes the condition match more.
  const query = parseBounded([type], params, repository.baseUrl, false)
  if (isFailure(query)) return query
  const scope = createSearchScope(repository, access, 's')
  const found = finishWithin(runQuery(scope, { ...query, sort: [], count: 1 }, undefined), steps)
  if (!found) return TOO_COSTLY
  const { hits, next } = found
  if (next) return fail({ problem: 'multiple-matches', type })
  const [hit] = hits
  const stored = hit && repository.find(type, hit.id)
  return { match: stored && new SqliteVersion(stored, repository.database) }
}

const TOO_COSTLY = fail({
  problem: 'too-costly',
  text: 'Cannot find the resource of a conditional request: too many resources meet a part of the condition. Search by an identifier',
})

/** The DocumentReferences that the caller may read and that name a Binary. */
export function findDocuments(
  repository: Repository,
  access: Access,
  binaryId: string,
): readonly SearchEntry[] {
  const { database, baseUrl } = repository
  const named = [['location', `Binary/${binaryId},${baseUrl}/Binary/${binaryId}`]] as const
  const query = parseQuery(['DocumentReference'], named, baseUrl, false)
  if (isFailure(query)) return []
  const scope = createSearchScope(repository, access, 'r')
  const { hits } = finish(runQuery(scope, { ...query, count: limits.DOCUMENTS_OF_BINARY }, undefined))
  return hits.map(hit => toEntry(database, hit))
}
