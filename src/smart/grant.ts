import type { OperationRule, Permission, ResourceReference } from '../fhir/index.ts'
import type { AccessFilter } from './access-filter.ts'
import type { Scope, ScopeContext } from './scope.ts'

/** What an access token says: who may do what, for which patient. */
export interface Grant {
  readonly scopes: readonly Scope[]
  /** The id of the one patient that `patient/` scopes speak of. */
  readonly patient?: string
  /** The user's own resource on this server. */
  readonly fhirUser?: ResourceReference
  readonly subject?: string
  /** Who issued the token, where it is not our auth server. */
  readonly issuer?: string
  readonly clientId?: string
  readonly tokenId?: string
}

/** How a server honours grants: its settings, and the rights that its users have by themselves. */
export interface EnforcementPolicy {
  readonly fhirBaseUrl: string
  /** `smart.fhir.scope-contexts` */
  readonly contexts: readonly ScopeContext[]
  /** `smart.fhir.search-letter`: the permission that a search needs (SCOPE-7). */
  readonly searchPermission: 'r' | 's'
  /** What a clinician may reach whatever a `user/` scope says; without it, everything (`smart.fhir.policy-file`). */
  readonly userFilter?: (user: ResourceReference, type: string, permission: Permission) => AccessFilter
  /** The operations that the server offers; by default those of the embedded server. */
  readonly operations?: readonly OperationRule[]
}

/** The portal's own client, which `smart.fhir.scope-contexts` never limits (SCOPE-8). */
export const PORTAL_CLIENT = 'sallyport-portal'
