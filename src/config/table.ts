import { appTable } from './app-table.ts'
import { auditTable } from './audit-table.ts'
import { databaseTable } from './database-table.ts'
import { networkTable } from './network-table.ts'
import { fixed, open, type SettingRow, type ValueOf } from './setting-row.ts'
import * as types from './setting-types.ts'
import { upstreamTable } from './upstream-table.ts'

/** Every setting: its name in the file, its variable, its kind of value and its default (contract 3). */
export const settingsTable = {
  issuerUrl: fixed({
    name: 'smart.server.issuer-url',
    env: 'SMART_ISSUER_URL',
    type: types.origin,
    initial: 'http://localhost:9000',
    about: 'Address of the auth server, and the issuer of its tokens.',
    of: settings => settings.issuerUrl,
  }),
  fhirBaseUrl: fixed({
    name: 'smart.server.fhir-base-url',
    env: 'SMART_FHIR_BASE_URL',
    type: types.baseAddress,
    initial: 'http://localhost:8080/fhir',
    about: 'FHIR base address: the `iss` of a launch and the audience of access tokens.',
    of: settings => settings.fhirBaseUrl,
  }),
  appUrl: fixed({
    name: 'smart.server.app-url',
    env: 'SMART_APP_URL',
    type: types.origin,
    initial: 'http://localhost:8081',
    about: 'Address of the app server with the session API.',
    of: settings => settings.appUrl,
  }),
  smartClientLaunchUrl: fixed({
    name: 'smart.server.smart-client-launch-url',
    env: 'SMART_CLIENT_LAUNCH_URL',
    type: types.launchAddress,
    initial: 'http://localhost:8081/launch',
    about: 'Launch address of the SMART app that the portal launches.',
    of: settings => settings.smartClientLaunchUrl,
  }),
  defaultClientId: fixed({
    name: 'smart.server.default-client-id',
    env: 'SMART_DEFAULT_CLIENT_ID',
    type: types.clientId,
    initial: 'sallyport-app',
    about: 'Client id of the app that the portal launches.',
    of: settings => settings.defaultClientId,
  }),
  defaultNeedPatientBanner: fixed({
    name: 'smart.server.default-need-patient-banner',
    alias: 'defaultNeedPatientBanner',
    env: 'SMART_DEFAULT_NEED_PATIENT_BANNER',
    type: types.flag,
    initial: 'true',
    about: 'Whether a launched app is asked to show the patient banner.',
    of: settings => settings.defaultNeedPatientBanner,
  }),
  accessTokenTtlSeconds: fixed({
    name: 'smart.server.access-token-ttl-seconds',
    env: 'SMART_ACCESS_TOKEN_TTL_SECONDS',
    type: types.wholeNumber(1, 86_400),
    initial: '300',
    about: 'Lifetime of an access token; of one for a back end (`client_credentials`) 300 s at most.',
    of: settings => settings.accessTokenTtlSeconds,
  }),
  databaseUrl: open({
    name: 'smart.server.database-url',
    env: 'SMART_DATABASE_URL',
    type: types.databaseUrl,
    otherwise: '`sqlite:<data folder>/sallyport.db`',
    about:
      'Where clinicians, clients, keys, tokens and sessions are kept: `sqlite:<path>` or `postgres://…`.',
    of: settings => settings.databaseUrl,
  }),
  dataDir: fixed({
    name: 'smart.server.data-dir',
    env: 'SMART_DATA_DIR',
    type: types.path,
    initial: './data',
    about: 'Folder of the embedded databases and of the secret that is made on first start.',
    of: settings => settings.dataDir,
  }),
  secret: open({
    name: 'smart.server.secret',
    env: 'SMART_SECRET',
    type: types.secretText,
    otherwise: 'on loopback made on first start in the data folder; off loopback it must be set',
    about: 'Encrypts what must be kept but never be readable in the database: signing keys, session tokens.',
    secret: true,
    of: settings => settings.secret,
  }),
  seedClinicianPassword: open({
    name: 'smart.server.seed-clinician-password',
    env: 'SMART_SEED_CLINICIAN_PASSWORD',
    type: types.password,
    otherwise: '`sallyport` on loopback, else a random one that is printed once',
    about: 'Password of the test clinician, who is made while there is no clinician at all.',
    secret: true,
    of: settings => settings.seedClinicianPassword,
  }),
  ...networkTable,
  loginFailureLimit: fixed({
    name: 'smart.server.login-failure-limit',
    env: 'SMART_LOGIN_FAILURE_LIMIT',
    type: types.wholeNumber(1, 1_000_000),
    initial: '10',
    about:
      'Failed logins per username and address (IPv6: one /64 network) before the next ones are answered with 429.',
    of: settings => settings.loginFailureLimit,
  }),
  loginFailureWindowSeconds: fixed({
    name: 'smart.server.login-failure-window-seconds',
    env: 'SMART_LOGIN_FAILURE_WINDOW_SECONDS',
    type: types.wholeNumber(1, 3600),
    initial: '300',
    about: 'How long a failed login counts.',
    of: settings => settings.loginFailureWindowSeconds,
  }),
  loginFailureLimitPerAddress: fixed({
    name: 'smart.server.login-failure-limit-per-address',
    env: 'SMART_LOGIN_FAILURE_LIMIT_PER_ADDRESS',
    type: types.wholeNumber(1, 1_000_000),
    initial: '1000',
    about:
      'Failed logins from one address (IPv6: one /64 network), for any username, before further logins get 429. All users behind one NAT, or behind a proxy that `trust-proxy` does not name, share one address.',
    of: settings => settings.loginFailureLimitPerAddress,
  }),
  loginIdleSeconds: open({
    name: 'smart.server.login-idle-seconds',
    env: 'SMART_LOGIN_IDLE_SECONDS',
    type: types.wholeNumber(0, 28_800),
    otherwise: '`1800`; on loopback `0`',
    about:
      'A login ends after this time without a page being opened; with `0` only the maximum of 8 hours applies. Apps keep their access.',
    of: settings => settings.loginIdleSeconds,
  }),
  openMetrics: fixed({
    name: 'smart.server.open-metrics',
    env: 'SMART_OPEN_METRICS',
    type: types.flag,
    initial: 'false',
    about: 'Shows `GET /metrics` to other hosts, not only to this machine.',
    of: settings => settings.openMetrics,
  }),
  logLevel: fixed({
    name: 'smart.server.log-level',
    env: 'SMART_LOG_LEVEL',
    type: types.logLevel,
    initial: 'warn',
    about:
      'Least level that is logged, as JSON lines on standard output; `info` has a line for each request.',
    of: settings => settings.logLevel,
  }),
  privateJwksHosts: open({
    name: 'smart.server.private-jwks-hosts',
    env: 'SMART_PRIVATE_JWKS_HOSTS',
    type: types.hosts,
    otherwise: 'none',
    about:
      'Hosts whose key sets (`jwks_uri`) are fetched although they are private or use `http:`; on loopback all may. The app server always may.',
    of: settings => settings.privateJwksHosts,
  }),
  openRegistration: open({
    name: 'smart.server.open-registration',
    env: 'SMART_OPEN_REGISTRATION',
    type: types.flag,
    otherwise: '`true` on loopback, else `false`',
    about: 'Lets anybody register a client at `/oauth2/register`; off loopback without `system/` scopes.',
    of: settings => settings.openRegistration,
  }),
  registrationToken: open({
    name: 'smart.server.registration-token',
    env: 'SMART_REGISTRATION_TOKEN',
    type: types.secretText,
    otherwise: 'none',
    about: 'Initial access token: whoever shows it as a bearer token may register a client.',
    secret: true,
    of: settings => settings.registrationToken,
  }),
  keyMaxAgeDays: fixed({
    name: 'smart.server.key-max-age-days',
    env: 'SMART_KEY_MAX_AGE_DAYS',
    type: types.wholeNumber(0, 3650),
    initial: '90',
    about: 'Age at which a new signing key takes over; `0` for only by command.',
    of: settings => settings.keyMaxAgeDays,
  }),
  ...databaseTable,
  ...auditTable,
  ...appTable,
  ...upstreamTable,
  fhirSearchLetter: fixed({
    name: 'smart.fhir.search-letter',
    env: 'SMART_SEARCH_LETTER',
    type: types.oneOf('r', 's'),
    initial: 'r',
    about: 'Letter that a search needs: `r` by the rule of this service, `s` as SMART has it.',
    of: settings => settings.fhir.searchPermission,
  }),
  fhirScopeContexts: fixed({
    name: 'smart.fhir.scope-contexts',
    env: 'SMART_SCOPE_CONTEXTS',
    type: types.contexts,
    initial: 'patient,user,system',
    about: 'Kinds of scopes that clients may use. Never limits the own token of the portal.',
    of: settings => settings.fhir.scopeContexts,
  }),
  fhirVersionAccess: fixed({
    name: 'smart.fhir.version-access',
    env: 'SMART_FHIR_VERSION_ACCESS',
    type: types.oneOf('current', 'version'),
    initial: 'current',
    about:
      'How access to an old version of a resource is decided. `current`: the version and the current version must both be within the grant; `version`: only the version itself.',
    of: settings => settings.fhir.versionAccess,
  }),
  fhirPolicyFile: open({
    name: 'smart.fhir.policy-file',
    env: 'SMART_POLICY_FILE',
    type: types.path,
    otherwise: 'none: every clinician may see every patient',
    about: 'File that says which clinician may see which patients.',
    of: settings => settings.fhir.policyFile,
  }),
  fhirSamplePatients: fixed({
    name: 'smart.fhir.sample-patients',
    env: 'SMART_SAMPLE_PATIENTS',
    type: types.wholeNumber(0, 100_000),
    initial: '60',
    about: 'Patients that are generated on first start of the embedded FHIR server; `0` for none.',
    of: settings => settings.fhir.samplePatients,
  }),
}

type Table = typeof settingsTable
export type SettingKey = keyof Table

/** What was given or is the default, before defaults that depend on other settings. */
export type SettingValues = { readonly [Key in SettingKey]: ValueOf<Table[Key]> }

/** The table as a list, in its order. */
export const settingRows = Object.entries(settingsTable) as readonly [SettingKey, SettingRow<unknown>][]
