import type { FeatureName, Settings } from '../../config/index.ts'

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
  | 'audit'
  | 'privateJwksHosts'
  | 'openRegistration'
  | 'registrationToken'
  | 'keyMaxAgeDays'
  | 'developerTools'
  | FeatureName
> & {
  readonly login: Pick<Settings['login'], 'passwords' | 'providers'>
  readonly metrics: Pick<Settings['metrics'], 'access'>
  readonly cds: Pick<Settings['cds'], 'services'>
  readonly app: Pick<Settings['app'], 'clientId' | 'scope' | 'authMethod'>
  readonly fhir: Pick<
    Settings['fhir'],
    'searchPermission' | 'scopeContexts' | 'upstreamUrl' | 'samplePatients'
  > & { readonly upstream: Pick<Settings['fhir']['upstream'], 'timeoutSeconds'> }
}
