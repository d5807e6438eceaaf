/**
 * The auth server (service.md part b): clinicians log in, pick a patient in the portal and launch an app; the app
 * gets its tokens at `/oauth2/*`. A folder an endpoint. It judges no FHIR request (the interceptor does) and holds no
 * app session; it meets the FHIR server over HTTP only.
 */
export { jwksUrlFault, launchUrlFault, logoUrlFault, redirectUriFault } from './client/addresses.ts'
export { holdsPrivateKey, keptKeySet } from './client/assertion/client-key.ts'
export { fileOrigins } from './client/origins.ts'
export { hashPassword, isPasswordOf } from './clinician/password.ts'
export { TEST_CLINICIAN } from './clinician/seed.ts'
export type { AuthSettings } from './context.ts'
export { type SmartConfigurationSettings, smartConfiguration } from './discovery/smart-configuration.ts'
export { type Initialized, type InitializeOptions, initialize } from './initialize.ts'
export { opensSigningKeys, withdrawEveryKey } from './keys/another-secret.ts'
export { KEY_LEAD_MS } from './keys/key-ring.ts'
export { makeNextSigningKey, withdrawSigningKey } from './keys/signing-key.ts'
export { endAccess } from './login/login.ts'
export { clientTokens } from './revoke/revocation.ts'
export { type AuthServerOptions, authServer } from './server.ts'
