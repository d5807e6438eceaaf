/**
 * The SMART scope language: what a scope says, and whether it permits a letter on a type (service.md 5.2,
 * contract 5.1). Pure; it knows nothing of tokens, requests or patients.
 */
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
