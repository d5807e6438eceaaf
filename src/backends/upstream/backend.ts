import {
  findNamedBinaries,
  findOperation,
  type HistoryQuery,
  limits,
  mayChange,
  type Params,
  type Resource,
  type Work,
} from '../../fhir/index.ts'
import type {
  BackendSession,
  CollectLimit,
  CommitOptions,
  Cursor,
  EverythingTarget,
  ExportRelay,
  FhirBackend,
  FhirRequest,
  History,
  Operation,
  Search,
  SearchEntry,
  VersionedWrite,
} from '../../fhir-api/index.ts'
import { type AccessFilter, grantFingerprint, type Panel } from '../../smart/index.ts'
import { createConcealment } from './concealment.ts'
import type { GatewayContext } from './context.ts'
import { CallerUpstream } from './http/allowance.ts'
import { performOperation } from './operations/operations.ts'
import { createRelay } from './operations/relay.ts'
import { parseCursor } from './paging.ts'
import { passRequest } from './pass/pass-request.ts'
import { EXCLUDED_TYPES } from './read/access.ts'
import { read, readLastWithin } from './read/read-within.ts'
import { buildStrictSearch, visitMatches } from './search/chains.ts'
import { collectEntries, findMatch } from './search/collect.ts'
import { UpstreamRows } from './search/export-rows.ts'
import { findEverything } from './search/find-everything.ts'
import { findHistory } from './search/find-history.ts'
import { performSearch } from './search/search.ts'
import { commit } from './write/commit.ts'
import { passWrite } from './write/pass-write.ts'

/** Another FHIR server as a backend of the FHIR API. Every request to it is work of the caller's request. */
export function createBackend(context: GatewayContext): FhirBackend {
  return {
    forRequest(request) {
      const caller = { holder: grantFingerprint(request.authenticated.grant), connection: request.connection }
      const deletions = new Map()
      const concealment = createConcealment(context.conceal)
      const bind = (work: Work) => {
        const upstream = new CallerUpstream(context.upstream, caller, work)
        return { ...context, upstream, deletions, concealment }
      }
      return new UpstreamSession(bind, request)
    },
    capabilities: context.capabilities,
    pages: context.pages,
    accessCache: context.accessCache,
    takesContent: true,
    excludedTypes: EXCLUDED_TYPES,
  }
}

/** The upstream on behalf of one request. A class, because there is one for every request. */
class UpstreamSession implements BackendSession {
  readonly #context: GatewayContext
  readonly #request: FhirRequest
  readonly rows: UpstreamRows
  readonly relay: ExportRelay | undefined

  constructor(bind: (work: Work) => GatewayContext, request: FhirRequest) {
    this.#context = bind(request.work)
    this.#request = request
    this.rows = new UpstreamRows(bind, request, this.#context)
    this.relay = this.#context.relaysExports ? createRelay(this.#context, request) : undefined
  }

  read(type: string, id: string, version?: string, filter?: AccessFilter) {
    return read(this.#context, this.#request, type, id, version, filter)
  }

  readLast(type: string, id: string, filter?: AccessFilter) {
    return readLastWithin(this.#context, this.#request, type, id, filter)
  }

  noteUnseen(type: string) {
    this.#context.concealment.note(type)
  }

  settle() {
    return this.#context.concealment.settle()
  }

  findDocuments(binaryId: string) {
    return findDocuments(this.#context, this.#request, binaryId)
  }

  findMatch(request: FhirRequest, type: string, params: Params) {
    return findMatch(this.#context, request, type, params)
  }

  commit(writes: readonly VersionedWrite[], options?: CommitOptions) {
    return commit(this.#context, this.#request, writes, options)
  }

  serialize<T>(keys: readonly string[], work: () => Promise<T>) {
    return this.#context.serialize(keys, work)
  }

  mayChange(operation: Operation) {
    const rule = findOperation(this.#context.operations, operation)
    return mayChange(operation) && rule?.needs.kind === 'all-data'
  }

  toPublic(content: Resource) {
    return JSON.parse(this.#context.urls.toPublic(JSON.stringify(content)))
  }

  panelMembers(panels: readonly Panel[], patients: ReadonlySet<string>) {
    return this.#context.findMembers(this.#context, this.#request, panels, patients)
  }

  passThrough(request: FhirRequest, cursor?: Cursor) {
    return passRequest(this.#context, request, cursor) ?? passWrite(this.#context, request)
  }

  search(request: FhirRequest<Search>, cursor?: Cursor) {
    return performSearch(this.#context, request, parseCursor(cursor))
  }

  collect(request: FhirRequest<Search>, limit: CollectLimit) {
    return collectEntries(this.#context, request, limit)
  }

  history(request: FhirRequest<History>, query: HistoryQuery, cursor?: Cursor) {
    return findHistory(this.#context, request, query, parseCursor(cursor))
  }

  everything(request: FhirRequest<Operation>, of: EverythingTarget, cursor?: Cursor) {
    return findEverything(this.#context, request, of, parseCursor(cursor))
  }

  operation(request: FhirRequest<Operation>) {
    return performOperation(this.#context, request)
  }
}

/** DocumentReferences within the grant that name a Binary. */
async function findDocuments(
  context: GatewayContext,
  request: FhirRequest,
  id: string,
): Promise<readonly SearchEntry[]> {
  const search = buildStrictSearch(request, 'DocumentReference', [
    ['location', `Binary/${id},${context.baseUrl}/Binary/${id}`],
    ['_count', String(limits.DOCUMENTS_OF_BINARY)],
  ])
  const found: SearchEntry[] = []
  await visitMatches(context, search, Number.POSITIVE_INFINITY, ({ matches }) => {
    found.push(...matches.filter(it => findNamedBinaries(it.resource, context.baseUrl).has(id)))
    return found.length >= limits.DOCUMENTS_OF_BINARY ? 'enough' : undefined
  })
  return found.slice(0, limits.DOCUMENTS_OF_BINARY)
}
