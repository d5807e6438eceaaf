/**
 * SMART's authorization model: the scope language, what a grant may touch of each resource type (access filters), and
 * the policy of a site about its clinicians. Pure: it reads no token, no request and no store.
 */

export type { Permission } from '../fhir/index.ts'
export {
  computeAccess,
  type ExplainedFilter,
  type FilterSource,
  type GrantedAccess,
  isClinician,
} from './access.ts'
export {
  type Access,
  type AccessFilter,
  type Constraint,
  fullAccess,
  noAccess,
  type VersionAccess,
} from './access-filter.ts'
export type { Authenticated, Authenticator, AuthFailure } from './authenticator.ts'
export { grantsBinary } from './binary-access.ts'
export { checkPatch } from './check-patch.ts'
export { type ConstraintGroup, groupConstraints, isUnrestricted } from './constraint.ts'
export { type EnforcementPolicy, type Grant, PORTAL_CLIENT } from './grant.ts'
export { grantFingerprint } from './grant-fingerprint.ts'
export { failHidden, findUpdateConflict } from './hidden.ts'
export { hasCompartment } from './patient-constraint.ts'
export type { AccessPolicy } from './policy/access-policy.ts'
export { type FindPanelMembership, isOfNamedOnly, type Panel, type PanelMembership } from './policy/panel.ts'
export { type InvalidPolicy, parsePolicy } from './policy/parse-policy.ts'
export { createUserFilter } from './policy/user-filter.ts'
export { impliedKeys, queryKey } from './query-keys.ts'
export { mayRevealAbsence } from './reveal-absence.ts'
export { isWritable, satisfies } from './satisfies.ts'
export {
  type PlainScope,
  parseScope,
  parseScopes,
  permits,
  type ResourceScope,
  type Scope,
  type ScopeContext,
} from './scope.ts'
export {
  findScopeListFault,
  hasTooManyCombined,
  LONGEST_SCOPE_LIST,
  MOST_COMBINED_PARAMETERS,
  MOST_SCOPE_PARAMETERS,
  MOST_SCOPES,
} from './scope-limits.ts'
