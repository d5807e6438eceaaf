import type { VersionAccess } from '../smart/index.ts'
import type { AccessCache } from './access-cache.ts'
import type { Audited, BackendSession, FhirBackend } from './backend.ts'
import type { Exports } from './exports.ts'
import type { Pages } from './paging.ts'
import type { FhirRequest, InteractionOf, Kind } from './request.ts'
import type { Failure, FhirResponse } from './response.ts'

/** Everything that the handlers of a request need. */
export interface Context {
  /** The FHIR base as clients know it. */
  readonly baseUrl: string
  readonly session: BackendSession
  readonly versionAccess: VersionAccess
  readonly accessCache: AccessCache
  readonly pages: Pages
  /** Types that the backend never serves. */
  readonly excludedTypes: ReadonlySet<string> | undefined
  readonly capabilities: FhirBackend['capabilities']
  /** Whether there is an audit trail. */
  readonly isRecorded: boolean
  /** The content of `.well-known/smart-configuration`. */
  readonly smartConfiguration: () => object
  readonly clock: () => number
  /** Only if bulk exports are offered. */
  readonly exports?: Exports | undefined
  /** Creates the audit records that a backend stores in the same transaction as a change, if it can. */
  readonly audited?: Audited | undefined
  /** `handle`: the entries of a Bundle are handled like requests. */
  readonly handle: (context: Context, request: FhirRequest) => Promise<FhirResponse | Failure>
}

export type Handler<K extends Kind> = (
  context: Context,
  request: FhirRequest<InteractionOf<K>>,
) => Promise<FhirResponse | Failure>
