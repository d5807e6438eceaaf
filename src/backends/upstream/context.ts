import type { Serialize } from '../../cache/index.ts'
import type { OperationRule } from '../../fhir/index.ts'
import type { AccessCache, Failure, FhirRequest, Pages } from '../../fhir-api/index.ts'
import type { AccessFilter, Panel, PanelMembership, VersionAccess } from '../../smart/index.ts'
import type { Conceal, Concealment } from './concealment.ts'
import type { Upstream } from './http/client.ts'
import type { UrlRewriter } from './http/urls.ts'
import type { IsUpstreamParameter, UpstreamProfile } from './profile.ts'
import type { MemberLookups } from './team.ts'

/** The parts of the gateway that its interactions need. */
export interface GatewayContext {
  /** The FHIR base URL as clients know it. */
  readonly baseUrl: string
  readonly clock: () => number
  readonly urls: UrlRewriter
  readonly upstream: Upstream
  /** The versions in which resources were deleted, as this session has read them, by `Type/id`. */
  readonly deletions: Map<string, number>
  /** Of this session. */
  readonly concealment: Concealment
  readonly conceal: Conceal | undefined
  /** Runs changes with a common key one after the other. */
  readonly serialize: Serialize
  /** The size of the largest response that is inspected, in bytes. */
  readonly responseLimit: number
  /** Whether the upstream's own bulk export is for callers who may see everything. */
  readonly relaysExports: boolean
  /** Whether there is an audit trail, from which AuditEvents are served. */
  readonly isRecorded: boolean
  /** The operations that the gateway offers. */
  readonly operations: readonly OperationRule[]
  readonly isUpstreamParameter: IsUpstreamParameter
  readonly pages: Pages
  readonly accessCache: AccessCache
  readonly versionAccess: VersionAccess
  readonly memberLookups: MemberLookups
  /** Finds which of these patients are on the panels of a policy (`smart.fhir.policy-file`). */
  readonly findMembers: (
    context: GatewayContext,
    request: FhirRequest,
    panels: readonly Panel[],
    patients: ReadonlySet<string>,
  ) => Promise<PanelMembership | Failure>
  /** Whether a search within a filter finds a resource; undefined where the upstream does not say it. */
  readonly findsWithin: (
    context: GatewayContext,
    request: FhirRequest,
    type: string,
    id: string,
    filter: AccessFilter,
  ) => Promise<boolean | undefined>
  /** How a search within a patient's compartment is sent: by its path, or by a search parameter. */
  readonly narrowing: () => 'compartment' | 'parameter'
  /** Whether the upstream follows chains and `_has`: then it finds the patients of a panel by itself. */
  readonly followsChains: () => Promise<boolean>
  readonly profile: () => UpstreamProfile
  /** Waits while the gateway asks the upstream what it is. */
  readonly recognize: () => Promise<void>
  /** Whether the upstream may answer searches of callers from earlier results. */
  readonly searchCache: 'bypass' | 'allow'
  /** The gateway's CapabilityStatement as JSON. */
  readonly capabilities: () => Promise<string | Failure>
}
