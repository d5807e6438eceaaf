import type { Interaction } from '../fhir/index.ts'
import type { AccessFilter, Panel } from '../smart/index.ts'

/** So many patients are named one by one. */
const MOST = 5

/** Whose data a request is kept to where that is more than one patient's, in words; what only data can tell with an "if". */
export function patientsIn(filter: AccessFilter, interaction: Interaction | undefined): string | undefined {
  if (filter === 'everything' || filter.length === 0) return undefined
  if (!filter.every(limit => limit.patient !== undefined || limit.panel)) return undefined
  const panels = filter.flatMap(({ panel }) => panel ?? [])
  const named = filter.flatMap(({ patient }) => patient ?? [])
  const patients = new Set([...named, ...panels.flatMap(panel => [...panel.patients])])
  const others = [...new Set(panels.flatMap(groupsOf))]
  const asked = interaction && patientAsked(interaction)
  if (asked !== undefined)
    return patients.has(asked)
      ? `as Patient/${asked} is a patient of the user`
      : `if Patient/${asked} is ${list(others)}`
  const all = [...shown(patients), ...others.map(group => `those ${group}`)]
  if (all.length === 0) return 'within no patient, as the policy gives the user none: it finds nothing'
  const isOfOne = interaction && 'id' in interaction && interaction.id !== undefined
  return `${isOfOne ? 'if it is of one of' : 'within'} the patients of the user: ${list(all)}`
}

function groupsOf({ organizations, careTeams, member }: Panel): readonly string[] {
  return [
    ...organizations.map(id => `of Organization/${id}`),
    ...careTeams.map(id => `of CareTeam/${id}`),
    ...(member ? [`of a care team with ${member.type}/${member.id}`] : []),
  ]
}

function patientAsked(interaction: Interaction): string | undefined {
  if (interaction.kind === 'search-compartment') return interaction.id
  const isPatient = 'type' in interaction && interaction.type === 'Patient'
  return isPatient && 'id' in interaction ? interaction.id : undefined
}

function shown(patients: ReadonlySet<string>): readonly string[] {
  const names = [...patients].slice(0, MOST).map(id => `Patient/${id}`)
  return patients.size > MOST ? [...names, `${patients.size - MOST} more by id`] : names
}

function list(items: readonly string[]): string {
  const last = items.at(-1) ?? ''
  return items.length > 1 ? `${items.slice(0, -1).join(', ')} or ${last}` : last
}
