import { isClinician, isOfNamedOnly, type Limit } from '../../consent/index.ts'
import { type Interaction, parseReference } from '../../fhir/index.ts'
import type { Letter, ResourceScope } from '../../scope/index.ts'
import type { Case } from './judge.ts'

/** What keeps the covering scopes from reaching the request, told from the token and the request alone. */
export function hint(of: Case, type: string, letter: Letter, covering: readonly ResourceScope[]): string {
  if (covering.every(scope => scope.context === 'patient')) return patientHint(of, type, letter)
  if (covering.every(scope => scope.context === 'user') && !of.grant.fhirUser)
    return 'The token names no fhirUser, so its user/ scopes reach nothing'
  const byRights = rightsHint(of, type, letter, covering)
  if (byRights !== undefined) return byRights
  return 'No granted scope reaches this one; a scope without a filter, or of a wider context, might'
}

/** Where it is the policy of the site that keeps a `user/` scope from reaching it. */
function rightsHint(
  { grant: { fhirUser }, policy, access }: Case,
  type: string,
  letter: Letter,
  covering: readonly ResourceScope[],
): string | undefined {
  if (!fhirUser || !isClinician(fhirUser) || !covering.some(scope => scope.context === 'user'))
    return undefined
  const reach = policy.userReach?.(fhirUser, type, letter) ?? 'everything'
  if (reach === 'everything') return undefined
  const user = `${fhirUser.type}/${fhirUser.id}`
  if (reach.length === 0) return `The policy gives ${user} nothing of ${type}, which may tell of any patient`
  const isNobody = ({ panel }: Limit) => panel && isOfNamedOnly(panel) && panel.patients.size === 0
  if (reach.every(isNobody)) return `The policy gives ${user} no patient`
  return access.reach(type, letter).length > 0 ? `The policy gives ${user} other patients` : undefined
}

function patientHint({ grant, access }: Case, type: string, letter: Letter): string {
  if (grant.patient === undefined) return 'The token names no patient, so its patient/ scopes reach nothing'
  const { reach } = access.reached(type, letter)
  if (reach === 'everything' || reach.length > 0)
    return 'A patient/ scope reaches only the patient of the token'
  const readable = access.reach(type, 'r')
  if (letter !== 'r' && letter !== 's' && (readable === 'everything' || readable.length > 0))
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
