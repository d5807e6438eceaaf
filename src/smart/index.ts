/**
 * SMART's authorization model: the scope language, the resources that a grant may touch (access filters), and a site's
 * policy about its clinicians. Pure: it reads no token, no request and no store.
 */

export type { Permission } from '../fhir/index.ts'
export {
  computeAccess,
  type ExplainedFilter,
  type FilterSource,
  type GrantedAccess,
} from './access.ts'
export {
  type Access,
  type AccessFilter,
  type Constraint,
  type ConstraintGroup,
  type FindPanelMembership,
  fullAccess,
  getImpliedKeys,
  getQueryKey,
  groupConstraints,
  hasCompartment,
  isOfNamedOnly,
  isUnconditional,
  noAccess,
  type Panel,
  type PanelMembership,
  seesAll,
  type VersionAccess,
} from './access-filter.ts'
export {
  checkPatch,
  failHidden,
  findUpdateConflict,
  grantsBinary,
  isWritable,
  mayRevealAbsence,
  satisfies,
} from './check-access.ts'
export type { Authenticated, Authenticator, AuthFailure } from './grant.ts'
export {
  type EnforcementPolicy,
  type Grant,
  grantFingerprint,
  isClinician,
  isProtected,
  PORTAL_CLIENT,
} from './grant.ts'
export {
  type AccessPolicy,
  createUserFilter,
  failPolicy,
  findPolicyMatches,
  formatPolicyProblem,
  givesAccessByCareTeam,
  type InvalidPolicy,
  namesPatients,
  type PatientFacts,
  type PolicyProblem,
  parsePolicy,
} from './policy.ts'
export {
  findScopeListFault,
  hasTooManyCombined,
  MAX_COMBINED_PARAMETERS,
  MAX_SCOPE_LIST_CHARACTERS,
  MAX_SCOPE_PARAMETERS,
  MAX_SCOPES,
  type PlainScope,
  parseScope,
  parseScopes,
  permits,
  type ResourceScope,
  type Scope,
  type ScopeContext,
  type ScopeListFault,
} from './scope.ts'
export { suggestScope, suggestType } from './suggest-scope.ts'
