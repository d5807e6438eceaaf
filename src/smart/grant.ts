import { createHash } from 'node:crypto'
import { remember } from '../core/index.ts'
import type {
  Interaction,
  OperationRule,
  ParsedChains,
  Permission,
  Refused,
  ResourceReference,
  Work,
} from '../fhir/index.ts'
import type { Access, AccessFilter } from './access-filter.ts'
import type { Scope, ScopeContext } from './scope.ts'

/** The contents of an access token: who may do what, for which patient. */
export interface Grant {
  readonly scopes: readonly Scope[]
  /** The id of the patient of `patient/` scopes. */
  readonly patient?: string
  /** The user's own resource on this server. */
  readonly fhirUser?: ResourceReference
  /** The patients of `user/` scopes of a patient or related person, beside a patient's own record. */
  readonly userPatients?: readonly string[]
  readonly subject?: string
  /** The issuer of the token, if it is not our auth server. */
  readonly issuer?: string
  readonly clientId?: string
  readonly tokenId?: string
  /** For the audit trail: the reason of an allowed request. */
  readonly note?: string
  /** For the audit trail: what the issuer notes about this token. */
  readonly mark?: string
  /** For the audit trail: the address of the browser for which the portal asks. */
  readonly address?: string
}

/** How a server applies grants: its settings, and its users' own rights. */
export interface EnforcementPolicy {
  readonly fhirBaseUrl: string
  /** `smart.fhir.scope-contexts` */
  readonly contexts: readonly ScopeContext[]
  /** `smart.fhir.search-letter`: the permission that a search needs (SCOPE-7). */
  readonly searchPermission: 'r' | 's'
  /** The user's own rights, which a `user/` scope cannot exceed; everything if undefined (`smart.fhir.policy-file`). */
  readonly userFilter?: (user: ResourceReference, type: string, permission: Permission) => AccessFilter
  /** Further types that only a `system/` scope that names them may write (`smart.fhir.protected-types`). */
  readonly protectedTypes?: readonly string[]
  /** The scope contexts in which a limited caller may write what gives others access; by default `system` (`smart.fhir.relation-contexts`). */
  readonly relationContexts?: readonly ScopeContext[]
  /** Whether care teams give access to patients at present. */
  readonly careTeamsGiveAccess?: () => boolean
  /** The operations that the server offers; by default those of the embedded server. */
  readonly operations?: readonly OperationRule[]
}

/**
 * Whether a limited caller with a scope of this context may not write a type, because its resources decide who has access:
 * an app could give its own patient's record to somebody else (WRITE-13).
 */
export function isRelationProtected(
  { relationContexts = ['system'], careTeamsGiveAccess }: EnforcementPolicy,
  context: ScopeContext,
  type: string,
  permission: Permission,
): boolean {
  if (permission === 'r' || permission === 's' || relationContexts.includes(context)) return false
  return type === 'RelatedPerson' || (type === 'CareTeam' && careTeamsGiveAccess?.() === true)
}

/** Resources of these types change how a server works, for all callers (SCOPE-10). */
const PROTECTED_TYPES: readonly string[] = [
  'CompartmentDefinition',
  'ImplementationGuide',
  'OperationDefinition',
  'SearchParameter',
  'StructureDefinition',
  'Subscription',
  'SubscriptionTopic',
]

/** Whether a permission on a type needs a `system/` scope that names the type. */
export function isProtected(
  { protectedTypes = [] }: Pick<EnforcementPolicy, 'protectedTypes'>,
  type: string,
  permission: Permission,
): boolean {
  if (permission === 'r' || permission === 's') return false
  return PROTECTED_TYPES.includes(type) || protectedTypes.includes(type)
}

/** Whether the site's policy applies to this user. */
export function isClinician({ type }: ResourceReference): boolean {
  return type === 'Practitioner' || type === 'PractitionerRole'
}

/** The portal's own client, which `smart.fhir.scope-contexts` never limits (SCOPE-8). */
export const PORTAL_CLIENT = 'sallyport-portal'

const fingerprints = new WeakMap<Grant, string>()

/**
 * Identifies a grant, for example in a page link. It is the same for every token of one grant, so that paging survives a
 * refresh, and differs for any other user, client, patient or set of scopes.
 */
export function grantFingerprint(grant: Grant | undefined): string {
  return grant === undefined ? '' : remember(fingerprints, grant, computeFingerprint)
}

function computeFingerprint(grant: Grant): string {
  const { issuer, subject, clientId, patient, fhirUser, userPatients, scopes } = grant
  const texts = scopes.map(scope => scope.text).toSorted()
  const parts = [issuer, subject, clientId, patient, fhirUser, userPatients, texts]
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
}

/** A caller with a valid token. Each interaction of the request (a Bundle has many) is decided separately. */
export interface Authenticated {
  readonly allowed: true
  /** For the audit trail. */
  readonly grant?: Grant
  decide(interaction: Interaction, work: Work): Refused | Permitted
}

/** An allowed interaction, with its access. */
interface Permitted {
  readonly allowed: true
  readonly access: Access
  /** For the audit trail: the scope that decided, `fhirUser`, `public`, or `entries` of a Bundle. */
  readonly by?: string
  /** The chained parameters of a search, as they were parsed. */
  readonly chains?: ParsedChains | undefined
  /** The scopes without which the includes of a search add nothing. */
  readonly lacks?: readonly string[] | undefined
}

/** A caller without a valid token. */
export interface AuthFailure extends Refused {
  /** For the audit trail: the grant of a token that was valid and has expired or was revoked. */
  readonly rejectedGrant?: Grant
}

/** Decides the requests to a FHIR server. The interceptor is one. */
export interface Authenticator {
  /**
   * Verifies the bearer token of a request, synchronously if it is cached. Never throws or rejects: any error becomes a
   * refusal.
   */
  authenticate(
    authorization: string | undefined,
  ): AuthFailure | Authenticated | Promise<AuthFailure | Authenticated>
}
