import { type Interaction, parseReference } from '../../fhir/index.ts'
import {
  type Constraint,
  isClinician,
  isOfNamedOnly,
  type Permission,
  type ResourceScope,
} from '../../smart/index.ts'
import type { Case } from './judge.ts'

/** What keeps the covering scopes from reaching the request, told from the token and the request alone. */
export function hint(
  of: Case,
  type: string,
  permission: Permission,
  covering: readonly ResourceScope[],
): string {
  if (covering.every(scope => scope.context === 'patient')) return patientHint(of, type, permission)
  if (covering.every(scope => scope.context === 'user') && !of.grant.fhirUser)
    return 'The token names no fhirUser, so its user/ scopes filter nothing'
  const byRights = rightsHint(of, type, permission, covering)
  if (byRights !== undefined) return byRights
  return 'No granted scope reaches this one; a scope without a filter, or of a wider context, might'
}

/** Where it is the policy of the site that keeps a `user/` scope from reaching it. */
function rightsHint(
  { grant: { fhirUser }, policy, access }: Case,
  type: string,
  permission: Permission,
  covering: readonly ResourceScope[],
): string | undefined {
  if (!fhirUser || !isClinician(fhirUser) || !covering.some(scope => scope.context === 'user'))
    return undefined
  const filter = policy.userFilter?.(fhirUser, type, permission) ?? 'everything'
  if (filter === 'everything') return undefined
  const user = `${fhirUser.type}/${fhirUser.id}`
  if (filter.length === 0) return `The policy gives ${user} nothing of ${type}, which may tell of any patient`
  const isNobody = ({ panel }: Constraint) => panel && isOfNamedOnly(panel) && panel.patients.size === 0
  if (filter.every(isNobody)) return `The policy gives ${user} no patient`
  return access.filterFor(type, permission).length > 0 ? `The policy gives ${user} other patients` : undefined
}

function patientHint({ grant, access }: Case, type: string, permission: Permission): string {
  if (grant.patient === undefined) return 'The token names no patient, so its patient/ scopes filter nothing'
  const { filter } = access.explainFilter(type, permission)
  if (filter === 'everything' || filter.length > 0)
    return 'A patient/ scope reaches only the patient of the token'
  const readable = access.filterFor(type, 'r')
  if (permission !== 'r' && permission !== 's' && (readable === 'everything' || readable.length > 0))
    return `A patient/ scope may read ${type}, which is shared, and never write it`
  return `No patient/ scope reaches ${type}, or its filter cannot be evaluated`
}

/** Of a search that is kept to one patient's record and names somebody else: allowed, and in vain. */
export function strangerHint(
  interaction: Interaction,
  within: string,
  fhirBaseUrl: string,
): string | undefined {
  const named = namedIn(interaction, fhirBaseUrl).map(id => `Patient/${id}`)
  const strangers = named.filter(patient => patient !== within)
  if (strangers.length === 0) return undefined
  return `The search names ${strangers.join(', ')}, and finds only what is in the record of ${within}`
}

function namedIn(interaction: Interaction, fhirBaseUrl: string): readonly string[] {
  if (!interaction.kind.startsWith('search') || !('params' in interaction)) return []
  const ofPatients = 'type' in interaction && interaction.type === 'Patient'
  return interaction.params.flatMap(([name, value]) => {
    const isBare = name === 'patient' || name.endsWith(':Patient') || (ofPatients && name === '_id')
    return value.split(',').flatMap(text => {
      const reference = parseReference(text, fhirBaseUrl)
      if (reference) return reference.type === 'Patient' ? [reference.id] : []
      return isBare && /^[A-Za-z0-9\-.]{1,64}$/.test(text) ? [text] : []
    })
  })
}
