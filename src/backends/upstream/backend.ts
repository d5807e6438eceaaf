import type { BackendSession, FhirBackend, FhirRequest, Kind } from '../../fhir-api/index.ts'
import { grantFingerprint } from '../../smart/index.ts'
import type { Context } from './call.ts'
import { perform } from './handle.ts'
import { lastVersion } from './judge/find.ts'
import { readVersion } from './read-version.ts'
import { allowanceFor, onBehalfOf, withAllowance } from './upstream/allowance.ts'

// They send few requests to the upstream, and come by the thousand.
const READS: ReadonlySet<Kind> = new Set(['read', 'vread'])

/** Another FHIR server as a backend of the FHIR API. The number of requests to it is limited for each session. */
export function createBackend(context: Context): FhirBackend {
  return {
    forRequest(request) {
      const caller = { holder: grantFingerprint(request.authenticated.grant), connection: request.connection }
      const upstream = READS.has(request.interaction.kind)
        ? onBehalfOf(context.upstream, caller)
        : withAllowance(context.upstream, allowanceFor(request.body), caller)
      return createSession({ ...context, upstream }, request)
    },
  }
}

function createSession(context: Context, request: FhirRequest): BackendSession {
  return {
    read: (type, id, version) => readVersion(context, request, type, id, version),
    readLast: (type, id) => lastVersion(context, request, type, id),
    panelMembers: (panels, patients) => context.rosterOf(context, request, panels, patients),
    perform: (api, it) => perform({ ...context, handle: (_context, entry) => api.handle(api, entry) }, it),
  }
}
