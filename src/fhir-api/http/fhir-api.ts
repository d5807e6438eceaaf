import type { FhirAudit } from '../../audit/index.ts'
import type { Authenticator, VersionAccess } from '../../smart/index.ts'
import type { Origins } from '../../web/index.ts'
import type { FhirBackend } from '../backend.ts'
import type { BaseLocation } from './find-interaction.ts'

/** What every request is handled with. */
export interface FhirApi extends BaseLocation {
  readonly guard: Authenticator
  readonly audit: FhirAudit | undefined
  readonly backend: FhirBackend
  readonly versionAccess: VersionAccess
  readonly smartConfiguration: () => object
  readonly clock: () => number
  readonly bodyLimit: number
  readonly origins: Origins
}
