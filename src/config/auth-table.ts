import { randomBytes } from 'node:crypto'
import { defineDerived, defineFixed, defineOpen, none } from './setting-row.ts'
import * as types from './setting-types.ts'

export const authTable = {
  smartClientLaunchUrl: defineDerived({
    name: 'smart.server.smart-client-launch-url',
    env: 'SMART_CLIENT_LAUNCH_URL',
    type: types.launchAddress,
    otherwise: '`<app URL>/launch`',
    about: 'Launch URL of the app that the portal launches by default.',
    derive: ({ appUrl }) => `${appUrl}/launch`,
  }),
  defaultClientId: defineFixed({
    name: 'smart.server.default-client-id',
    env: 'SMART_DEFAULT_CLIENT_ID',
    type: types.clientId,
    initial: 'sallyport-app',
    about: 'Client id of the app that the portal launches by default.',
  }),
  patientApps: defineDerived({
    name: 'smart.server.patient-apps',
    env: 'SMART_PATIENT_APPS',
    type: types.clientIds,
    otherwise: '`sallyport-app` on loopback, otherwise none',
    about:
      'Client ids of apps that the start page of patients and relatives offers, in this order. Each needs a launch URL, which gets `iss` and starts a standalone launch.',
    derive: ({ onLoopback }): readonly string[] => (onLoopback ? ['sallyport-app'] : []),
  }),
  defaultNeedPatientBanner: defineFixed({
    name: 'smart.server.default-need-patient-banner',
    alias: 'defaultNeedPatientBanner',
    env: 'SMART_DEFAULT_NEED_PATIENT_BANNER',
    type: types.flag,
    initial: 'true',
    about: 'Default of `need_patient_banner` for new launches.',
  }),
  accessTokenTtlSeconds: defineFixed({
    name: 'smart.server.access-token-ttl-seconds',
    env: 'SMART_ACCESS_TOKEN_TTL_SECONDS',
    type: types.wholeNumber(1, 86_400),
    initial: '300',
    about:
      'Lifetime of an access token. Tokens of backend services (`client_credentials`) live at most 300 s.',
  }),
  offlineAccessMaxDays: defineFixed({
    name: 'smart.server.offline-access-max-days',
    env: 'SMART_OFFLINE_ACCESS_MAX_DAYS',
    type: types.wholeNumber(0, 3650),
    initial: '0',
    about:
      'The maximum age of `offline_access` in days, however often the app uses it; the user must then allow the app again. A lower value also ends existing access that is older. `0`: access ends only 100 days after its last use.',
  }),
  keyMaxAgeDays: defineFixed({
    name: 'smart.server.key-max-age-days',
    env: 'SMART_KEY_MAX_AGE_DAYS',
    type: types.wholeNumber(0, 3650),
    initial: '90',
    about: 'Age at which the auth server replaces its signing key. `0`: only by command.',
  }),
  seedClinicianPassword: defineDerived({
    name: 'smart.server.seed-clinician-password',
    env: 'SMART_SEED_CLINICIAN_PASSWORD',
    type: types.password,
    otherwise: '`sallyport` on loopback, otherwise random and printed once',
    about: 'Password of the test clinician, which the auth server creates if there are no clinicians.',
    secret: true,
    derive: ({ onLoopback }) => (onLoopback ? 'sallyport' : randomBytes(12).toString('base64url')),
  }),
  lab: defineDerived({
    name: 'smart.server.lab',
    env: 'SMART_LAB',
    type: types.flag,
    otherwise: '`true` on loopback, otherwise `false`',
    about:
      'Lets developers get launches and tokens without a login, for tests of apps. Never turn it on where there are real patients. Off loopback it also needs `SMART_LAB_EXPOSES_ALL_PATIENTS=true` and https, and is for administrators.',
    derive: ({ onLoopback }) => onLoopback,
  }),
  labExposesAllPatients: defineFixed({
    name: 'smart.server.lab-exposes-all-patients',
    env: 'SMART_LAB_EXPOSES_ALL_PATIENTS',
    type: types.flag,
    initial: 'false',
    about:
      'Confirms the risk of the lab off loopback: in the browser of an administrator, and by commands, it opens every record as any user, without a sign-in or consent of that user.',
  }),
  loginIdleSeconds: defineDerived({
    name: 'smart.server.login-idle-seconds',
    env: 'SMART_LOGIN_IDLE_SECONDS',
    type: types.wholeNumber(0, 28_800),
    otherwise: '`1800`; on loopback `0`',
    about:
      'A login ends if the user does nothing for this time: opens no page, and neither types nor moves the pointer on one. The records in our own app close with it; other apps keep their access. With `0` only the maximum of 8 hours applies.',
    derive: ({ onLoopback }) => (onLoopback ? 0 : 1800),
  }),
  loginFailureLimit: defineFixed({
    name: 'smart.server.login-failure-limit',
    env: 'SMART_LOGIN_FAILURE_LIMIT',
    type: types.wholeNumber(1, 1_000_000),
    initial: '10',
    about:
      'Failed logins for one username from one address (IPv6: one /64 network) before further logins get 429.',
  }),
  loginFailureWindowSeconds: defineFixed({
    name: 'smart.server.login-failure-window-seconds',
    env: 'SMART_LOGIN_FAILURE_WINDOW_SECONDS',
    type: types.wholeNumber(1, 3600),
    initial: '300',
    about: 'How long a failed login counts.',
  }),
  loginFailureLimitPerAddress: defineFixed({
    name: 'smart.server.login-failure-limit-per-address',
    env: 'SMART_LOGIN_FAILURE_LIMIT_PER_ADDRESS',
    type: types.wholeNumber(1, 1_000_000),
    initial: '1000',
    about:
      'Failed logins from one address (IPv6: one /64 network), for any username, before further logins get 429. All users behind one NAT, or behind a proxy that `trust-proxy` does not name, share one address.',
  }),
  'audit.activityClinicians': defineOpen({
    name: 'smart.server.activity-clinicians',
    env: 'SMART_ACTIVITY_CLINICIANS',
    type: types.usernames,
    otherwise: 'every clinician on loopback, administrators with the lab on, otherwise none',
    about: 'Usernames of the clinicians who may see `/activity`.',
  }),
  'audit.patientSearch': defineFixed({
    name: 'smart.server.audit-patient-search',
    env: 'SMART_AUDIT_PATIENT_SEARCH',
    type: types.flag,
    initial: 'true',
    about:
      'Lets administrators and auditors whose accounts open no patient records find patients by name, MRN or birth date on `/admin/audit`, to answer who used a record. They see name, birth date and MRN, and each search is recorded.',
  }),
  openRegistration: defineDerived({
    name: 'smart.server.open-registration',
    env: 'SMART_OPEN_REGISTRATION',
    type: types.flag,
    otherwise: '`true` on loopback, otherwise `false`',
    about:
      'Allows dynamic registration (`/oauth2/register`) without an initial access token; off loopback without `system/` scopes.',
    derive: ({ onLoopback }) => onLoopback,
  }),
  registrationToken: defineOpen({
    name: 'smart.server.registration-token',
    env: 'SMART_REGISTRATION_TOKEN',
    type: types.secretText,
    otherwise: 'none',
    about: 'Initial access token for dynamic registration.',
    secret: true,
  }),
  privateJwksHosts: defineDerived({
    name: 'smart.server.private-jwks-hosts',
    env: 'SMART_PRIVATE_JWKS_HOSTS',
    type: types.hosts,
    otherwise: 'none',
    about:
      'Hosts from which the auth server may fetch key sets (`jwks_uri`) although they have private addresses or use `http:`. On loopback, all hosts are allowed. The key set of the app server is always allowed.',
    derive: none,
  }),
}

export const appTable = {
  'app.clientId': defineFixed({
    name: 'smart.app.client-id',
    type: types.clientId,
    initial: 'sallyport-app',
    about: 'Client id of the app server at the auth server.',
  }),
  'app.authMethod': defineFixed({
    name: 'smart.app.auth-method',
    type: types.oneOf('private_key_jwt', 'none'),
    initial: 'private_key_jwt',
    about:
      'How the app server authenticates if the auth server supports `private_key_jwt`: with its key set (`/jwks`), or not at all (public client).',
  }),
  'app.scope': defineFixed({
    name: 'smart.app.scope',
    type: types.scopes,
    initial:
      'launch openid fhirUser online_access patient/Patient.rs patient/Condition.rs patient/MedicationRequest.rs patient/Medication.rs patient/Observation.rs patient/AllergyIntolerance.rs patient/Encounter.rs',
    about: 'Scopes that the app server requests.',
  }),
  'app.issuers': defineDerived({
    name: 'smart.app.issuers',
    type: types.baseAddresses,
    otherwise: 'the FHIR base URL',
    about: 'FHIR base URLs (`iss`) from which the app server accepts launches.',
    derive: ({ fhirBaseUrl }) => [fhirBaseUrl],
  }),
  'app.sessionMaxSeconds': defineFixed({
    name: 'smart.app.session-max-seconds',
    env: 'SMART_SESSION_MAX_SECONDS',
    type: types.wholeNumber(1, 31_536_000),
    initial: '28800',
    about: 'Maximum lifetime of a session.',
  }),
  'app.sessionIdleSeconds': defineFixed({
    name: 'smart.app.session-idle-seconds',
    env: 'SMART_SESSION_IDLE_SECONDS',
    type: types.wholeNumber(1, 31_536_000),
    initial: '1800',
    about:
      'A session ends after this time without a request, and after `smart.server.login-idle-seconds` if that is shorter.',
  }),
  'app.frameOrigins': defineDerived({
    name: 'smart.app.frame-origins',
    type: types.origins,
    otherwise: 'none',
    about:
      'Origins whose pages may show the app server in a frame ([embedding](how-to/embed.md)). Its cookies are then `SameSite=None; Secure; Partitioned`.',
    derive: none,
  }),
  'app.timeoutSeconds': defineFixed({
    name: 'smart.app.timeout-seconds',
    type: types.wholeNumber(1, 300),
    initial: '10',
    about:
      'How long the app server waits for a response of the FHIR server or of the auth server (at most 20 s).',
  }),
}
