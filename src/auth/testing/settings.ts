import type { AuthSettings } from '../base/settings.ts'

/** The default settings on loopback. */
export const testSettings: AuthSettings = {
  issuerUrl: 'http://localhost:9000',
  fhirBaseUrl: 'http://localhost:8080/fhir',
  appUrl: 'http://localhost:8081',
  smartClientLaunchUrl: 'http://localhost:8081/launch',
  defaultClientId: 'sallyport-app',
  defaultNeedPatientBanner: true,
  accessTokenTtlSeconds: 300,
  seedClinicianPassword: 'sallyport',
  bind: ['127.0.0.1', '::1'],
  allowedHosts: [],
  trustProxy: undefined,
  onLoopback: true,
  loginFailureLimit: 10,
  loginFailureWindowSeconds: 300,
  loginFailureLimitPerAddress: 1000,
  loginIdleSeconds: 0,
  login: { passwords: true, providers: [] },
  cds: { services: [] },
  audit: { kept: true, failure: 'refuse', days: 1095, activityClinicians: undefined },
  metrics: { access: 'loopback' },
  privateJwksHosts: [],
  openRegistration: true,
  registrationToken: undefined,
  keyMaxAgeDays: 90,
  lab: false,
  developerTools: false,
  app: {
    clientId: 'sallyport-app',
    // Most tests use a public client.
    authMethod: 'none',
    scope:
      'launch openid fhirUser online_access patient/Patient.rs patient/Condition.rs patient/MedicationRequest.rs patient/Observation.rs',
  },
  fhir: {
    searchPermission: 'r',
    scopeContexts: ['patient', 'user', 'system'],
    upstreamUrl: undefined,
    samplePatients: 60,
    upstream: { timeoutSeconds: 10 },
  },
}
