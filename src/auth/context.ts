import type { Auditor } from '../audit/index.ts'
import type { Settings } from '../config/index.ts'
import type { EnforcementPolicy } from '../smart/index.ts'
import type { Sealer, Store } from '../store/index.ts'
import type { KeySets } from './client/assertion/key-sets.ts'
import type { KeyRing } from './keys/key-ring.ts'
import type { CheckPassword } from './login/check-password.ts'
import type { Providers } from './login/providers/providers.ts'
import type { GetPortalToken } from './portal/portal-token.ts'

/** The settings that the auth server uses. */
export type AuthSettings = Pick<
  Settings,
  | 'issuerUrl'
  | 'fhirBaseUrl'
  | 'appUrl'
  | 'smartClientLaunchUrl'
  | 'defaultClientId'
  | 'defaultNeedPatientBanner'
  | 'accessTokenTtlSeconds'
  | 'seedClinicianPassword'
  | 'bind'
  | 'allowedHosts'
  | 'trustProxy'
  | 'onLoopback'
  | 'loginFailureLimit'
  | 'loginFailureWindowSeconds'
  | 'loginFailureLimitPerAddress'
  | 'loginIdleSeconds'
  | 'openMetrics'
  | 'audit'
  | 'privateJwksHosts'
  | 'openRegistration'
  | 'registrationToken'
  | 'keyMaxAgeDays'
  | 'lab'
> & {
  readonly login: Pick<Settings['login'], 'passwords' | 'providers'>
  readonly app: Pick<Settings['app'], 'clientId' | 'scope' | 'authMethod'>
  readonly fhir: Pick<
    Settings['fhir'],
    'searchPermission' | 'scopeContexts' | 'upstreamUrl' | 'samplePatients'
  > & { readonly upstream: Pick<Settings['fhir']['upstream'], 'timeoutSeconds'> }
}

/** The dependencies of every endpoint. */
export interface AuthContext {
  readonly settings: AuthSettings
  readonly store: Store
  readonly sealer: Sealer
  readonly audit: Auditor
  readonly keys: KeyRing
  /** The key sets that clients publish. */
  readonly keySets: KeySets
  readonly checkPassword: CheckPassword
  readonly getPortalToken: GetPortalToken
  readonly providers: Providers
  /** Milliseconds since 1970. */
  readonly clock: () => number
  /** Which patients a clinician may see (`smart.fhir.policy-file`). */
  readonly userFilter?: EnforcementPolicy['userFilter']
  /** For requests to the FHIR server. */
  readonly fetch: typeof globalThis.fetch
}
