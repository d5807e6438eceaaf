/**
 * The auth server: clinicians log in, pick a patient in the portal and launch an app, which gets its tokens at
 * `/oauth2/*`. Each endpoint has a folder. The auth server does not check FHIR requests, which the interceptor does, and
 * has no app sessions. It accesses the FHIR server over HTTP only.
 */

export { setPassword } from './admin/accounts/change-sign-in.ts'
export { addUser, changeUser } from './admin/accounts/change-user.ts'
export type { NewUser } from './admin/accounts/check-user.ts'
export { explainSignIn } from './admin/accounts/explain-sign-in.ts'
export { findUnknown, listFhirUsers, makeLookupContext } from './admin/accounts/fhir-users.ts'
export { linkUser } from './admin/accounts/link-user.ts'
export type { ChangedUser } from './admin/accounts/perform-on-user.ts'
export { describeSharing } from './admin/accounts/shared-fhir-users.ts'
export { listPlainFields, type UserChanges, type UserKind } from './admin/accounts/user-fields.ts'
export { listUsers, type UserDescription } from './admin/accounts/users.ts'
export {
  createAdminApiDocument,
  LIST_COMMANDS,
  OPERATION_COMMANDS,
  SHOW_COMMANDS,
} from './admin/administration.ts'
export { describeClientState } from './admin/apps/client-list.ts'
export {
  addClient,
  type ClientRow,
  changeClient,
  describeClient,
  ensureClient,
  findClientRow,
  listClients,
} from './admin/apps/clients.ts'
export { type Admin, AdminFailure, makeCommandLine } from './admin/base/action.ts'
export { withdrawKey, withdrawKeys } from './admin/server/keys.ts'
export { reloadHere } from './admin/server/system.ts'
export type { ListCommand } from './admin/subject/command.ts'
export { type Filters, readFilters } from './admin/subject/filters.ts'
export { findUsernames } from './admin/trail/audit-who.ts'
export { checkFile, type FileCheck } from './admin/trail/check-file.ts'
export { readRecordFilter, TRAIL_FILTERS } from './admin/trail/filters.ts'
export { HEAD as TRAIL_HEAD, type VerifiedTrail, verifyRecords } from './admin/trail/verification.ts'
export { followAnnouncements } from './base/announcements.ts'
export type { Controls, Reloaded } from './base/context.ts'
export { describeExport } from './base/export-record.ts'
export type { AuthRefusal } from './base/refusal.ts'
export { type Initialized, type InitializeOptions, initialize } from './initialize.ts'
export { CLIENT_FIELDS, PLAIN_FIELDS } from './oauth/clients/fields.ts'
export { type ClientChanges, deleteClient, insertClient } from './oauth/clients/store-client.ts'
export {
  CLIENT_DEFAULTS,
  ClientFault,
  findClientFault,
  findClientIdFault,
  normalizeScope,
  readRegisteredKeys,
} from './oauth/clients/validate.ts'
export {
  buildResourceDocuments,
  buildSmartConfiguration,
  type SmartConfigurationSettings,
} from './oauth/discovery.ts'
export { listScopeNotes } from './oauth/grants/scope-notes.ts'
export { canOpenSigningKeys, makeNextSigningKey, withdrawSigningKey } from './oauth/keys/signing-key.ts'
export type { ActivityProblem } from './pages/activity/problems.ts'
export {
  type AuthServerOptions,
  type CommandContext,
  type CommandRequest,
  createAuthServer,
  explainProblems,
  loadTestCommands,
} from './server.ts'
export { findTestAccounts, hasAdministrator, seedSampleAccounts, TEST_CLINICIAN } from './users/accounts.ts'
export { findNewPasswordFault, isPasswordOf } from './users/passwords.ts'
export { checkProvider } from './users/providers/providers.ts'
export { findSubject } from './users/sign-in/account.ts'
export { describeMadeForLoopback } from './users/validity/made-for-loopback.ts'
export { makeRules } from './users/validity/rule.ts'
export { ADMIN_READ_SCOPE, ADMIN_SCOPE, AUDIT_SCOPE } from './words/program-scopes.ts'
export { summarizeScopes } from './words/scopes.ts'
