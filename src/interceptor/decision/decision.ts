import {
  type Because,
  failFor,
  type Interaction,
  type NOT_WITHIN,
  type ParsedChains,
  parseReference,
  type Work,
} from '../../fhir/index.ts'
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
import type { InsufficientScope, Method, Refusal } from '../refuse.ts'

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
      /** What the includes of a search would need: they add nothing. */
      readonly lacks?: readonly InsufficientScope[] | undefined
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

type NotWithin = keyof typeof NOT_WITHIN

/** Explains why the covering scopes do not permit the request, from the token and the request alone. */
export function explainDenial(
  context: DecisionContext,
  type: string,
  permission: Permission,
  covering: readonly ResourceScope[],
): Because<NotWithin> {
  if (covering.every(scope => scope.context === 'patient'))
    return explainPatientScopes(context, type, permission)
  if (covering.every(scope => scope.context === 'user') && !context.grant.fhirUser)
    return failFor('no-user-claim')
  return explainPolicy(context, type, permission, covering) ?? failFor('resource-not-covered')
}

/** Explains a denial that is due to the site's policy. */
function explainPolicy(
  { grant: { fhirUser }, policy, access }: DecisionContext,
  type: string,
  permission: Permission,
  covering: readonly ResourceScope[],
): Because<NotWithin> | undefined {
  if (!fhirUser || !isClinician(fhirUser) || !covering.some(scope => scope.context === 'user'))
    return undefined
  const filter = policy.userFilter?.(fhirUser, type, permission) ?? 'everything'
  if (filter === 'everything') return undefined
  const user = `${fhirUser.type}/${fhirUser.id}`
  if (filter.length === 0) return failFor('policy-excludes-type', { user, type })
  const isEmptyPanel = ({ panel }: Constraint) => panel && isOfNamedOnly(panel) && panel.patients.size === 0
  if (filter.every(isEmptyPanel)) return failFor('policy-without-patients', { user })
  return access.filterFor(type, permission).length > 0
    ? failFor('policy-of-other-patients', { user })
    : undefined
}

function explainPatientScopes(
  { grant, access }: DecisionContext,
  type: string,
  permission: Permission,
): Because<NotWithin> {
  if (grant.patient === undefined) return failFor('no-patient-claim')
  if (access.filterFor(type, permission).length > 0) return failFor('not-the-patient')
  if (permission !== 's' && access.filterFor(type, 'r').length > 0)
    return failFor('shared-type-read-only', { type })
  return failFor('type-without-patient-scope', { type })
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
