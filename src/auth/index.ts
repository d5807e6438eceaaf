/**
 * The auth server: clinicians log in, pick a patient in the portal and launch an app, which gets its tokens at
 * `/oauth2/*`. Each endpoint has a folder. The auth server does not check FHIR requests, which the interceptor does, and
 * has no app sessions. It accesses the FHIR server over HTTP only.
 */

export { type Admin, AdminFailure, COMMAND_LINE } from './admin/action.ts'
export {
  addClient,
  approveClient,
  ClientFailure,
  type ClientRow,
  changeClient,
  removeClient,
  setClientDisabled,
} from './admin/clients.ts'
export {
  addUser,
  changeUser,
  linkUser,
  type NewUser,
  setPassword,
  type UserChanges,
} from './admin/clinicians.ts'
export { listKeys, rotateKeys, withdrawKey, withdrawKeys } from './admin/keys.ts'
export { followAnnouncements } from './admin/system.ts'
export { type AppChanges, addApp, removeApp } from './apps/operations.ts'
export {
  APP_DEFAULTS,
  AppFault,
  findAppFault,
  findClientIdFault,
  normalizeScope,
  readAppKeys,
} from './apps/validate.ts'
export { ADMIN_SCOPE } from './client/client.ts'
export { findTestAccounts, isPasswordOf, seedSampleAccounts, TEST_CLINICIAN } from './clinician.ts'
export type { AuthSettings, Controls, Reloaded } from './context.ts'
export { buildSmartConfiguration, type SmartConfigurationSettings } from './discovery.ts'
export { type Initialized, type InitializeOptions, initialize } from './initialize.ts'
export { canOpenSigningKeys, makeNextSigningKey, withdrawSigningKey } from './keys/signing-key.ts'
export {
  type CommandContext,
  type CommandRequest,
  issueLaunchByCommand,
  issueTokenByCommand,
} from './lab/command-line.ts'
export { explainSignIn, findSubject } from './login/providers/account.ts'
export { checkProvider } from './login/providers/providers.ts'
export { Refusal } from './refusal.ts'
export { type AuthServerOptions, createAuthServer } from './server.ts'
export { describeMadeForLoopback } from './validity/made-for-loopback.ts'
export { makeRules } from './validity/rule.ts'
