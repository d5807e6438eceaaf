import { findNamedBinaries, findOperation, limits } from '../../fhir/index.ts'
import type { BackendSession, FhirBackend, FhirRequest, Kind, SearchEntry } from '../../fhir-api/index.ts'
import { isFailure } from '../../fhir-api/index.ts'
import { grantFingerprint } from '../../smart/index.ts'
import { EXCLUDED_TYPES } from './access.ts'
import { commit } from './commit.ts'
import type { GatewayContext } from './context.ts'
import { bindCaller, computeAllowance, limitRequests } from './http/allowance.ts'
import { performOperation } from './operations.ts'
import { passRequest } from './pass-request.ts'
import { passWrite } from './pass-write.ts'
import { readLast, readVersion } from './read-version.ts'
import { buildStrictSearch } from './search/chains.ts'
import { collectEntries, findMatch } from './search/collect.ts'
import { findEverything } from './search/find-everything.ts'
import { findHistory } from './search/find-history.ts'
import { findPage } from './search/find-page.ts'
import { parseCursor } from './search/page-links.ts'
import { fetchPage, toEntry } from './search/pages.ts'
import { planSearch } from './search/plan.ts'

// They are frequent and send few requests to the upstream.
const READS: ReadonlySet<Kind> = new Set(['read', 'vread'])

/** Another FHIR server as a backend of the FHIR API. The number of requests to it is limited for each session. */
export function createBackend(context: GatewayContext): FhirBackend {
  return {
    forRequest(request) {
      const caller = { holder: grantFingerprint(request.authenticated.grant), connection: request.connection }
      const upstream = READS.has(request.interaction.kind)
        ? bindCaller(context.upstream, caller)
        : limitRequests(context.upstream, computeAllowance(request.body), caller)
      return createSession({ ...context, upstream }, request)
    },
    async capabilities() {
      const statement = await context.capabilities()
      return isFailure(statement) ? statement : JSON.stringify(statement)
    },
    pages: context.pages,
    accessCache: context.accessCache,
    excludedTypes: EXCLUDED_TYPES,
  }
}

function createSession(context: GatewayContext, request: FhirRequest): BackendSession {
  return {
    read: (type, id, version) => readVersion(context, request, type, id, version),
    readLast: (type, id) => readLast(context, request, type, id),
    findDocuments: binaryId => findDocuments(context, request, binaryId),
    findMatch: (it, type, params) => findMatch(context, it, type, params),
    commit: (writes, options) => commit(context, request, writes, options),
    mayChange: operation =>
      operation.posted === true && findOperation(context.operations, operation)?.needs.kind === 'all-data',
    toPublic: content => JSON.parse(context.urls.toPublic(JSON.stringify(content))),
    panelMembers: (panels, patients) => context.findMembers(context, request, panels, patients),
    passThrough: (it, cursor) => passRequest(context, it, cursor) ?? passWrite(context, it),
    search: (it, cursor) => findPage(context, it, parseCursor(cursor)),
    collect: (it, limit) => collectEntries(context, it, limit),
    history: (it, query, cursor) => findHistory(context, it, query, parseCursor(cursor)),
    everything: (it, of, cursor) => findEverything(context, it, of, parseCursor(cursor)),
    operation: it => performOperation(context, it),
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
  const plan = await planSearch(context, search)
  if (isFailure(plan) || !plan.request) return []
  const page = await fetchPage(context, search, plan.request, plan.check)
  if (isFailure(page)) return []
  return page.matches
    .filter(it => findNamedBinaries(it.resource, context.baseUrl).has(id))
    .slice(0, limits.DOCUMENTS_OF_BINARY)
    .map(toEntry)
}
