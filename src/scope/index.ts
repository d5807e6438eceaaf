/**
 * The SMART scope language: what a scope says, and whether it permits a letter on a type (service.md 5.2,
 * contract 5.1). Pure; it knows nothing of tokens, requests or patients.
 */
export {
  findScopeListFault,
  hasTooManyCombined,
  LONGEST_SCOPE_LIST,
  MOST_COMBINED_PARAMETERS,
  MOST_SCOPE_PARAMETERS,
  MOST_SCOPES,
} from './limits.ts'
export { impliedKeys, queryKey } from './query-keys.ts'
export {
  type Letter,
  type PlainScope,
  parseScope,
  parseScopes,
  permits,
  type ResourceScope,
  type Scope,
  type ScopeContext,
} from './scope.ts'
