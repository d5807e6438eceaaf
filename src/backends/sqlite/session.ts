import type { HistoryQuery, Params } from '../../fhir/index.ts'
import { fail, limits, parseQuery } from '../../fhir/index.ts'
import type {
  BackendSession,
  CollectLimit,
  CommitOptions,
  CommitResult,
  ConditionMatch,
  Cursor,
  EverythingTarget,
  Failure,
  FhirRequest,
  History,
  HistoryPage,
  LocalWrites,
  Operation,
  Search,
  SearchEntry,
  SearchPage,
  StoredVersion,
  VersionedWrite,
} from '../../fhir-api/index.ts'
import type { PanelMembership } from '../../smart/index.ts'
import type { Call, Context } from './call.ts'
import { commit } from './commit.ts'
import { findHistory } from './history/find-history.ts'
import { isProblem, type Problem } from './problem.ts'
import type { Outbox } from './repository/outbox.ts'
import { toEntry } from './search/entry.ts'
import { findEverything } from './search/find-everything.ts'
import { findPage, parseCriteria } from './search/find-page.ts'
import { parseCursor } from './search/pages.ts'
import { createQueryContext } from './search/query-context.ts'
import { runQuery } from './search/run-query.ts'
import { findExcess } from './search/width.ts'
import { SqliteVersion } from './stored-version.ts'

/** The resources of one file on behalf of one request. */
export class SqliteSession implements BackendSession {
  readonly #context: Context
  readonly #request: FhirRequest
  readonly #outbox: Outbox | undefined
  readonly local: LocalWrites
  #failuresBefore: number

  constructor(context: Context, request: FhirRequest, outbox: Outbox | undefined, local: LocalWrites) {
    this.#context = context
    this.#request = request
    this.#outbox = outbox
    this.local = local
    this.#failuresBefore = context.repository.database.countFailures()
  }

  read(type: string, id: string, version?: string): StoredVersion | undefined {
    const { repository } = this.#context
    const stored =
      version === undefined ? repository.find(type, id) : repository.findVersion(type, id, version)
    return stored && new SqliteVersion(stored, repository.database)
  }

  search(request: FhirRequest<Search>, cursor?: Cursor): SearchPage | Failure {
    return findPage(this.#context, request, parseCursor(cursor))
  }

  collect(request: FhirRequest<Search>, limit: CollectLimit): readonly SearchEntry[] | 'too-many' | Failure {
    return collect(this.#context, request, limit)
  }

  history(request: FhirRequest<History>, query: HistoryQuery, cursor?: Cursor): HistoryPage | Failure {
    return findHistory(this.#context, request, query, parseCursor(cursor))
  }

  everything(request: FhirRequest<Operation>, of: EverythingTarget, cursor?: Cursor): SearchPage | Failure {
    return findEverything(this.#context, request, of, parseCursor(cursor))
  }

  findDocuments(binaryId: string): readonly SearchEntry[] {
    return findDocuments(this.#context, this.#request, binaryId)
  }

  panelMembers(): PanelMembership {
    return this.#context.membership
  }

  findMatch(request: FhirRequest, type: string, params: Params): ConditionMatch | Failure {
    return findMatch(this.#context, request, type, params)
  }

  commit(writes: readonly VersionedWrite[], options?: CommitOptions): CommitResult {
    return commit(this.#context.repository, this.#outbox, writes, options)
  }

  /** A group that fails undoes what was read from it. */
  flush(): void | Promise<void> {
    const { database } = this.#context.repository
    const isSettled = database.countFailures() === this.#failuresBefore && !database.pending()
    return isSettled ? undefined : this.#waitForGroup()
  }

  async #waitForGroup(): Promise<void> {
    const { database } = this.#context.repository
    try {
      await database.flush(this.#failuresBefore)
    } finally {
      // A failure is reported once, so that the rest of a batch can go on.
      this.#failuresBefore = database.countFailures()
    }
  }
}

/** DocumentReferences within what the caller may read that name a Binary. */
function findDocuments(
  { repository, baseUrl }: Context,
  { access }: Call,
  id: string,
): readonly SearchEntry[] {
  const { database } = repository
  const named = [['location', `Binary/${id},${baseUrl}/Binary/${id}`]] as const
  const query = parseQuery(['DocumentReference'], named, baseUrl, false)
  if (isProblem(query)) return []
  const ground = { database, scene: createQueryContext(repository, access, 'r') }
  const { hits } = runQuery(ground, { ...query, count: limits.DOCUMENTS_OF_BINARY }, undefined)
  return hits.map(hit => toEntry(database, hit))
}

/** All matches of a search of one type. */
function collect(
  context: Context,
  call: Call<Search>,
  { matches, characters }: CollectLimit,
): readonly SearchEntry[] | 'too-many' | Problem {
  const { repository } = context
  const { database } = repository
  const query = parseCriteria(context, call)
  if (isProblem(query)) return query
  const wide = findExcess(query)
  if (wide) return wide
  const ground = { database, scene: createQueryContext(repository, call.access, 's') }
  const { hits, next } = runQuery(ground, { ...query, count: matches }, undefined, characters)
  return next ? 'too-many' : hits.map(hit => toEntry(database, hit))
}

/** Finds the one resource that a condition is about. */
function findMatch(
  { repository, baseUrl }: Context,
  { access }: FhirRequest,
  type: string,
  params: Params,
): ConditionMatch | Problem {
  // Lenient would be dangerous here: an ignored parameter makes the condition match more.
  const query = parseQuery([type], params, baseUrl, false)
  if (isProblem(query)) return query
  const wide = findExcess(query)
  if (wide) return wide
  const scene = createQueryContext(repository, access, 's')
  const { hits, next } = runQuery(
    { database: repository.database, scene },
    { ...query, sort: [], count: 1 },
    undefined,
  )
  const [hit] = hits
  if (next) return fail({ problem: 'multiple-matches', type })
  const stored = hit && repository.find(type, hit.id)
  return { match: stored && new SqliteVersion(stored, repository.database) }
}
