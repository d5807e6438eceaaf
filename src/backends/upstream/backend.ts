import { findOperation, isProblem } from '../../fhir/index.ts'
import type { BackendSession, FhirBackend, FhirRequest, Kind } from '../../fhir-api/index.ts'
import { grantFingerprint } from '../../smart/index.ts'
import { EXCLUDED_TYPES } from './access/excluded-types.ts'
import { findDocuments } from './access/find-documents.ts'
import type { Context } from './call.ts'
import { commit } from './commit.ts'
import { performOperation } from './operations/operation.ts'
import { passRequest } from './pass-request.ts'
import { passWrite } from './pass-write.ts'
import { readLast, readVersion } from './read-version.ts'
import { collectEntries } from './search/collect.ts'
import { findEverything } from './search/find-everything.ts'
import { findHistory } from './search/find-history.ts'
import { findPage } from './search/find-page.ts'
import { findMatch } from './search/match.ts'
import { parseCursor } from './search/pages.ts'
import { computeAllowance, onBehalfOf, withAllowance } from './upstream/allowance.ts'

// They send few requests to the upstream, and come by the thousand.
const READS: ReadonlySet<Kind> = new Set(['read', 'vread'])

/** Another FHIR server as a backend of the FHIR API. The number of requests to it is limited for each session. */
export function createBackend(context: Context): FhirBackend {
  return {
    forRequest(request) {
      const caller = { holder: grantFingerprint(request.authenticated.grant), connection: request.connection }
      const upstream = READS.has(request.interaction.kind)
        ? onBehalfOf(context.upstream, caller)
        : withAllowance(context.upstream, computeAllowance(request.body), caller)
      return createSession({ ...context, upstream }, request)
    },
    async capabilities() {
      const statement = await context.capabilities()
      return isProblem(statement) ? statement : JSON.stringify(statement)
    },
    pages: context.pages,
    accessCache: context.accessCache,
    excludedTypes: EXCLUDED_TYPES,
  }
}

function createSession(context: Context, request: FhirRequest): BackendSession {
  return {
    read: (type, id, version) => readVersion(context, request, type, id, version),
    readLast: (type, id) => readLast(context, request, type, id),
    findDocuments: binaryId => findDocuments(context, request, binaryId),
    findMatch: (it, type, params) => findMatch(context, it, type, params),
    commit: (writes, options) => commit(context, request, writes, options),
    mayChange: operation =>
      operation.posted === true && findOperation(context.operations, operation)?.needs.kind === 'all-data',
    toPublic: content => JSON.parse(context.addresses.outward(JSON.stringify(content))),
    panelMembers: (panels, patients) => context.findMembers(context, request, panels, patients),
    passThrough: (it, cursor) => passRequest(context, it, cursor) ?? passWrite(context, it),
    search: (it, cursor) => findPage(context, it, parseCursor(cursor)),
    collect: (it, limit) => collectEntries(context, it, limit),
    history: (it, query, cursor) => findHistory(context, it, query, parseCursor(cursor)),
    everything: (it, of, cursor) => findEverything(context, it, of, parseCursor(cursor)),
    operation: it => performOperation(context, it),
  }
}
