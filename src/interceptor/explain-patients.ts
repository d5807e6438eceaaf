import type { Interaction } from '../fhir/index.ts'
import type { AccessFilter, Panel } from '../smart/index.ts'

const MAX_LISTED_PATIENTS = 5

/** Describes the patients that a request is limited to, unless it is one. An "if" marks what depends on stored data. */
export function describePatients(
  filter: AccessFilter,
  interaction: Interaction | undefined,
): string | undefined {
  if (filter === 'everything' || filter.length === 0) return undefined
  if (!filter.every(constraint => constraint.patient !== undefined || constraint.panel)) return undefined
  const panels = filter.flatMap(({ panel }) => panel ?? [])
  const named = filter.flatMap(({ patient }) => patient ?? [])
  const patients = new Set([...named, ...panels.flatMap(panel => [...panel.patients])])
  const others = [...new Set(panels.flatMap(describeGroups))]
  const requested = interaction && findRequestedPatient(interaction)
  if (requested !== undefined)
    return patients.has(requested)
      ? `as Patient/${requested} is a patient of the user`
      : `if Patient/${requested} is ${joinWithOr(others)}`
  const all = [...listPatients(patients), ...others.map(group => `those ${group}`)]
  if (all.length === 0) return 'within no patient, as the policy gives the user none: it finds nothing'
  const isOfOne = interaction && 'id' in interaction && interaction.id !== undefined
  return `${isOfOne ? 'if it is of one of' : 'within'} the patients of the user: ${joinWithOr(all)}`
}

function describeGroups({ organizations, careTeams, member }: Panel): readonly string[] {
  return [
    ...organizations.map(id => `of Organization/${id}`),
    ...careTeams.map(id => `of CareTeam/${id}`),
    ...(member ? [`of a care team with ${member.type}/${member.id}`] : []),
  ]
}

function findRequestedPatient(interaction: Interaction): string | undefined {
  if (interaction.kind === 'search-compartment') return interaction.id
  const isPatient = 'type' in interaction && interaction.type === 'Patient'
  return isPatient && 'id' in interaction ? interaction.id : undefined
}

function listPatients(patients: ReadonlySet<string>): readonly string[] {
  const names = [...patients].slice(0, MAX_LISTED_PATIENTS).map(id => `Patient/${id}`)
  return patients.size > MAX_LISTED_PATIENTS
    ? [...names, `${patients.size - MAX_LISTED_PATIENTS} more by id`]
    : names
}

function joinWithOr(items: readonly string[]): string {
  const last = items.at(-1) ?? ''
  return items.length > 1 ? `${items.slice(0, -1).join(', ')} or ${last}` : last
}
