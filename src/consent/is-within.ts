import {
  containedPatients,
  isRecord,
  matches,
  namesOtherPatient,
  parseReference,
  patientsOf,
  type Resource,
} from '../fhir/index.ts'
import type { Limit, Reach } from './reach.ts'
import type { Panel, Roster } from './rights/panel.ts'

/**
 * Whether a resource is reached. A search parameter that cannot be evaluated on it reaches nothing; without a roster
 * only the patients whom a panel names are on it.
 */
export function isWithin(resource: Resource, reach: Reach, baseUrl: string, roster?: Roster): boolean {
  return reach === 'everything' || reach.some(limit => isWithinLimit(resource, limit, baseUrl, roster))
}

function isWithinLimit(
  resource: Resource,
  limit: Limit,
  baseUrl: string,
  roster: Roster | undefined,
): boolean {
  if (limit.id !== undefined && resource.id !== limit.id) return false
  if (limit.patient !== undefined && !patientsOf(resource, baseUrl).has(limit.patient)) return false
  if (limit.sole && limit.patient !== undefined && namesOtherPatient(resource, limit.patient, baseUrl))
    return false
  if (limit.panel && !isOfPanel(resource, limit.panel, limit.sole, baseUrl, roster)) return false
  if (!containsNoOther(resource, limit, baseUrl, roster)) return false
  return (limit.query ?? []).every(([name, value]) => matches(resource, name, value, baseUrl) === true)
}

/** Whether everything that the resource contains is about patients of the limit. */
function containsNoOther(
  resource: Resource,
  { patient, panel }: Limit,
  baseUrl: string,
  roster: Roster | undefined,
): boolean {
  if (resource.contained === undefined || (patient === undefined && !panel)) return true
  const isOurs = (id: string) =>
    (patient === undefined || id === patient) &&
    (!panel || panel.patients.has(id) || (roster?.holds(panel, id) ?? false))
  return [...containedPatients(resource, baseUrl)].every(isOurs)
}

function isOfPanel(
  resource: Resource,
  panel: Panel,
  sole: true | undefined,
  baseUrl: string,
  roster: Roster | undefined,
): boolean {
  const holds = (patient: string) => {
    if (panel.patients.has(patient)) return true
    if (!sole || resource.resourceType !== 'Patient') return roster?.holds(panel, patient) ?? false
    // The content itself is judged, old and new: no write brings a patient under an organization or lets one go. Nor
    // does it make one under a chosen id, to which others' data may refer already.
    const isHeld = roster?.holds(panel, patient) ?? false
    return (
      isHeld &&
      (isManaged(resource, panel, baseUrl) ||
        (roster?.holds({ ...panel, organizations: [] }, patient) ?? false))
    )
  }
  // A new Patient has no id yet: its organization alone tells.
  const isNew = sole && resource.resourceType === 'Patient' && resource.id === undefined
  const isOne = isNew ? isManaged(resource, panel, baseUrl) : [...patientsOf(resource, baseUrl)].some(holds)
  return isOne && !(sole && namesOtherPatient(resource, holds, baseUrl))
}

function isManaged({ managingOrganization }: Resource, { organizations }: Panel, baseUrl: string): boolean {
  const text = isRecord(managingOrganization) ? managingOrganization.reference : undefined
  const reference = typeof text === 'string' ? parseReference(text, baseUrl) : undefined
  return reference?.type === 'Organization' && organizations.includes(reference.id)
}
