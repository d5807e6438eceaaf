/**
 * The auth server: clinicians log in, pick a patient in the portal and launch an app, which gets its tokens at
 * `/oauth2/*`. Each endpoint has a folder. The auth server does not check FHIR requests, which the interceptor does, and
 * has no app sessions. It accesses the FHIR server over HTTP only.
 */

export { type AppChanges, addApp, approveApp, changeApp, removeApp } from './apps/operations.ts'
export {
  APP_DEFAULTS,
  AppFault,
  findAppFault,
  findClientIdFault,
  normalizeScope,
  readAppKeys,
} from './apps/validate.ts'
export { findSampleAccounts, seedSampleAccounts, TEST_CLINICIAN } from './clinician/clinician.ts'
export { hashPassword, isPasswordOf } from './clinician/password.ts'
export type { AuthSettings, Controls, Reloaded } from './context.ts'
export { buildSmartConfiguration, type SmartConfigurationSettings } from './discovery/metadata.ts'
export { type Initialized, type InitializeOptions, initialize } from './initialize.ts'
export { KEY_LEAD_MS } from './keys/key-ring.ts'
export { makeNextSigningKey, withdrawSigningKey } from './keys/signing-key.ts'
export { canOpenSigningKeys, withdrawEveryKey } from './keys/withdraw-keys.ts'
export {
  type CommandContext,
  type CommandRequest,
  issueLaunchByCommand,
  issueTokenByCommand,
} from './lab/command-line.ts'
export { endAccess } from './login/login.ts'
export { findSubject } from './login/providers/account.ts'
export { explainSignIn } from './login/providers/explain.ts'
export { Refusal } from './refusal.ts'
export { type AuthServerOptions, createAuthServer } from './server.ts'
