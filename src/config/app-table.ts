import { defineFixed, open } from './setting-row.ts'
import * as types from './setting-types.ts'

/** The settings of the app server. */
export const appTable = {
  appClientId: defineFixed({
    name: 'smart.app.client-id',
    env: 'SMART_APP_CLIENT_ID',
    type: types.clientId,
    initial: 'sallyport-app',
    about: 'Client id of the app server at the auth server.',
    of: settings => settings.app.clientId,
  }),
  appAuthMethod: defineFixed({
    name: 'smart.app.auth-method',
    env: 'SMART_APP_AUTH_METHOD',
    type: types.oneOf('private_key_jwt', 'none'),
    initial: 'private_key_jwt',
    about:
      'How the app server authenticates if the auth server supports `private_key_jwt`: with its key set (`/jwks`), or not at all (public client).',
    of: settings => settings.app.authMethod,
  }),
  appScope: defineFixed({
    name: 'smart.app.scope',
    env: 'SMART_APP_SCOPE',
    type: types.scopes,
    initial:
      'launch openid fhirUser online_access patient/Patient.rs patient/Condition.rs patient/MedicationRequest.rs patient/Observation.rs',
    about: 'Scopes that the app server requests.',
    of: settings => settings.app.scope,
  }),
  appIssuers: open({
    name: 'smart.app.issuers',
    env: 'SMART_APP_ISSUERS',
    type: types.baseAddresses,
    otherwise: 'the FHIR base URL',
    about: 'FHIR base URLs (`iss`) from which the app server accepts launches.',
    of: settings => settings.app.issuers,
  }),
  appSessionMaxSeconds: defineFixed({
    name: 'smart.app.session-max-seconds',
    env: 'SMART_SESSION_MAX_SECONDS',
    type: types.wholeNumber(1, 31_536_000),
    initial: '28800',
    about: 'Maximum lifetime of a session.',
    of: settings => settings.app.sessionMaxSeconds,
  }),
  appSessionIdleSeconds: defineFixed({
    name: 'smart.app.session-idle-seconds',
    env: 'SMART_SESSION_IDLE_SECONDS',
    type: types.wholeNumber(1, 31_536_000),
    initial: '1800',
    about: 'A session ends after this time without a request.',
    of: settings => settings.app.sessionIdleSeconds,
  }),
  appTimeoutSeconds: defineFixed({
    name: 'smart.app.timeout-seconds',
    env: 'SMART_APP_TIMEOUT_SECONDS',
    type: types.wholeNumber(1, 300),
    initial: '10',
    about:
      'How long the app server waits for a response of the FHIR server or of the auth server (at most 20 s).',
    of: settings => settings.app.timeoutSeconds,
  }),
}
