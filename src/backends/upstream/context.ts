import type { Interaction, OperationRule } from '../../fhir/index.ts'
import type { AccessCache, FhirRequest, Pages } from '../../fhir-api/index.ts'
import type { Panel, PanelMembership, VersionAccess } from '../../smart/index.ts'
import type { Upstream } from './http/client.ts'
import type { Addresses } from './http/urls.ts'
import type { Problem } from './problem.ts'
import type { IsForUpstream } from './search/upstream-parameters.ts'

/** A call as the handlers take it. */
export interface Call<I extends Interaction = Interaction> extends FhirRequest<I> {
  /** A search of our own, by whose outcome something is decided: every parameter is evaluated here. */
  readonly isStrict?: true
}

/** What the handlers work with. */
export interface Context {
  /** The FHIR base as clients know it. */
  readonly baseUrl: string
  readonly addresses: Addresses
  readonly upstream: Upstream
  /** The largest answer that is looked into, in bytes. */
  readonly responseLimit: number
  /** Whether an audit trail has to know whose data are read and written, so that they are looked into. */
  readonly isRecorded: boolean
  /** The operations that are offered. */
  readonly operations: readonly OperationRule[]
  /** Which search parameters are left to the upstream. */
  readonly isForUpstream: IsForUpstream
  readonly pages: Pages
  readonly accessCache: AccessCache
  readonly versionAccess: VersionAccess
  /** Asks the upstream who of these patients is on the panels of a policy (`smart.fhir.policy-file`). */
  readonly findMembers: (
    context: Context,
    call: Call,
    panels: readonly Panel[],
    patients: ReadonlySet<string>,
  ) => Promise<PanelMembership | Problem>
  /** How a patient's compartment is asked for: by its path, or by a search parameter. */
  readonly narrowing: () => Promise<'compartment' | 'parameter'>
  readonly capabilities: () => Promise<object | Problem>
}
