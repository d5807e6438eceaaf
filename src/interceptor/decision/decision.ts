import { type Interaction, type ParsedChains, parseReference, type Work } from '../../fhir/index.ts'
import {
  type Access,
  type AccessFilter,
  type Constraint,
  type EnforcementPolicy,
  type Grant,
  type GrantedAccess,
  isClinician,
  isOfNamedOnly,
  type Permission,
  type ResourceScope,
} from '../../smart/index.ts'
import type { Method, Refusal } from '../refuse.ts'

/** Allowed by a granted scope within its access filter, or refused for a reason that the caller may know. */
export type Decision =
  | {
      readonly allowed: true
      /** The deciding scope, `fhirUser` for the user's own resource, or `entries` for a Bundle, whose entries decide. */
      readonly by: ResourceScope | 'fhirUser' | 'public' | 'entries'
      /** What the caller may access; the server must apply it. */
      readonly access: Access
      /** The filter for the type that the request is about. */
      readonly within: AccessFilter
      /** The chained parameters of a search, so that the server need not parse them again. */
      readonly chains?: ParsedChains | undefined
    }
  | { readonly allowed: false; readonly refusal: Refusal }

/** Everything that a decision depends on, except the interaction. */
export interface DecisionContext {
  readonly method: Method
  readonly grant: Grant
  readonly policy: EnforcementPolicy
  readonly access: GrantedAccess
  /** The work that is left for the request. The entries of a Bundle share it. */
  readonly work: Work
}

/** Explains why the covering scopes do not permit the request, from the token and the request alone. */
export function explainDenial(
  context: DecisionContext,
  type: string,
  permission: Permission,
  covering: readonly ResourceScope[],
): string {
  if (covering.every(scope => scope.context === 'patient'))
    return explainPatientScopes(context, type, permission)
  if (covering.every(scope => scope.context === 'user') && !context.grant.fhirUser)
    return 'The token has no fhirUser claim, so its user/ scopes grant nothing'
  const policyHint = explainPolicy(context, type, permission, covering)
  if (policyHint !== undefined) return policyHint
  return 'No granted scope covers this resource; a scope without a filter, or with a wider context, might'
}

/** Explains a denial that is due to the site's policy. */
function explainPolicy(
  { grant: { fhirUser }, policy, access }: DecisionContext,
  type: string,
  permission: Permission,
  covering: readonly ResourceScope[],
): string | undefined {
  if (!fhirUser || !isClinician(fhirUser) || !covering.some(scope => scope.context === 'user'))
    return undefined
  const filter = policy.userFilter?.(fhirUser, type, permission) ?? 'everything'
  if (filter === 'everything') return undefined
  const user = `${fhirUser.type}/${fhirUser.id}`
  if (filter.length === 0)
    return `The policy gives ${user} no access to ${type}, which may contain data of any patient`
  const isEmptyPanel = ({ panel }: Constraint) => panel && isOfNamedOnly(panel) && panel.patients.size === 0
  if (filter.every(isEmptyPanel)) return `The policy gives ${user} no patients`
  return access.filterFor(type, permission).length > 0 ? `The policy gives ${user} other patients` : undefined
}

function explainPatientScopes(
  { grant, access }: DecisionContext,
  type: string,
  permission: Permission,
): string {
  if (grant.patient === undefined)
    return 'The token has no patient claim, so its patient/ scopes grant nothing'
  if (access.filterFor(type, permission).length > 0)
    return 'A patient/ scope covers only the patient of the token'
  if (permission !== 's' && access.filterFor(type, 'r').length > 0)
    return `A patient/ scope can read ${type}, which is shared, but never write it`
  return `No patient/ scope covers ${type}, or its filter cannot be evaluated`
}

/** Explains why a search that is limited to one patient's record finds nothing of the other patients that it names. */
export function explainOtherPatients(
  interaction: Interaction,
  within: string,
  fhirBaseUrl: string,
): string | undefined {
  const named = findNamedPatients(interaction, fhirBaseUrl).map(id => `Patient/${id}`)
  const others = named.filter(patient => patient !== within)
  if (others.length === 0) return undefined
  return `The search names ${others.join(', ')}, but finds only data in the record of ${within}`
}

function findNamedPatients(interaction: Interaction, fhirBaseUrl: string): readonly string[] {
  if (!('params' in interaction)) return []
  const ofPatients = 'type' in interaction && interaction.type === 'Patient'
  return interaction.params.flatMap(([name, value]) => {
    const isBare = /^(?:patient|subject)$|:Patient$/.test(name) || (ofPatients && name === '_id')
    return value.split(',').flatMap(text => {
      const reference = parseReference(text, fhirBaseUrl)
      if (reference) return reference.type === 'Patient' ? [reference.id] : []
      return isBare && /^[A-Za-z0-9\-.]{1,64}$/.test(text) ? [text] : []
    })
  })
}
