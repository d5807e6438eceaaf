import type { Interaction } from '../../fhir/index.ts'
import type { AccessCache, FhirRequest, Pages } from '../../fhir-api/index.ts'
import type { PanelMembership, VersionAccess } from '../../smart/index.ts'
import type { Repository } from './repository/repository.ts'

/** A request to find something. */
export type Call<I extends Interaction = Interaction> = FhirRequest<I>

/** What the searches of this backend work with. */
export interface Context {
  readonly repository: Repository
  readonly baseUrl: string
  readonly pages: Pages
  /** Who is on whose panel: the rights of users (`smart.fhir.policy-file`). */
  readonly membership: PanelMembership
  readonly accessCache: AccessCache
  readonly versionAccess: VersionAccess
  /** JSON of the CapabilityStatement. */
  readonly capabilities: () => string
  readonly smartConfiguration: () => object
  readonly clock: () => number
}
