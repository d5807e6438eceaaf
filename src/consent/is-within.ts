import {
  containedPatients,
  createMatcher,
  isRecord,
  namesOtherPatient,
  parseReference,
  patientsOf,
  type Resource,
  referredPatients,
} from '../fhir/index.ts'
import type { Limit, Reach } from './reach.ts'
import type { Panel, Roster } from './rights/panel.ts'

/**
 * Whether a resource is reached. A search parameter that cannot be evaluated on it reaches nothing; without a roster
 * only the patients whom a panel names are on it.
 */
export function isWithin(resource: Resource, reach: Reach, baseUrl: string, roster?: Roster): boolean {
  if (reach === 'everything') return true
  const isWithinOne = limitTest(resource, baseUrl, roster)
  return reach.some(isWithinOne)
}

/** The test of one limit after another: many granular scopes differ in nothing but their search parameters. */
function limitTest(
  resource: Resource,
  baseUrl: string,
  roster: Roster | undefined,
): (limit: Limit) => boolean {
  const matches = createMatcher(resource, baseUrl)
  let last: { readonly limit: Limit; readonly isSubject: boolean } | undefined
  return limit => {
    if (!(limit.query ?? []).every(pair => matches(pair) === true)) return false
    if (!last || !hasSameSubject(last.limit, limit))
      last = { limit, isSubject: isOfSubject(resource, limit, baseUrl, roster) }
    return last.isSubject
  }
}

function hasSameSubject(a: Limit, b: Limit): boolean {
  return (
    a.patient === b.patient &&
    a.panel === b.panel &&
    a.sole === b.sole &&
    a.refersTo === b.refersTo &&
    a.id === b.id
  )
}

/**
 * Whether new content may be written: it is within the reach, and no reference in it, also of an element that puts it
 * into nobody's compartment (`Observation.focus`, `Patient.link`), is to a patient outside.
 */
export function isWritable(resource: Resource, reach: Reach, baseUrl: string, roster?: Roster): boolean {
  if (reach === 'everything') return true
  const isWithinOne = limitTest(resource, baseUrl, roster)
  return reach.some(limit => isWithinOne(limit) && refersToNoOther(resource, limit, baseUrl, roster))
}

function refersToNoOther(
  resource: Resource,
  limit: Limit,
  baseUrl: string,
  roster: Roster | undefined,
): boolean {
  const isOurs = patientTest(limit, roster)
  return !isOurs || [...referredPatients(resource, baseUrl)].every(isOurs)
}

/** Tells whether a patient is one of the limit; undefined where the limit is to no patients. */
function patientTest(
  { patient, panel, refersTo }: Limit,
  roster: Roster | undefined,
): ((id: string) => boolean) | undefined {
  const only = patient ?? refersTo
  if (only === undefined && !panel) return undefined
  return id =>
    (only === undefined || id === only) &&
    (!panel || panel.patients.has(id) || (roster?.holds(panel, id) ?? false))
}

/** Whether the limit holds apart from its search parameters. */
function isOfSubject(resource: Resource, limit: Limit, baseUrl: string, roster: Roster | undefined): boolean {
  if (limit.id !== undefined && resource.id !== limit.id) return false
  if (limit.patient !== undefined && !patientsOf(resource, baseUrl).has(limit.patient)) return false
  if (limit.sole && limit.patient !== undefined && namesOtherPatient(resource, limit.patient, baseUrl))
    return false
  if (limit.panel && !isOfPanel(resource, limit.panel, limit.sole, baseUrl, roster)) return false
  return containsNoOther(resource, limit, baseUrl, roster)
}

/** Whether everything that the resource contains is about patients of the limit. */
function containsNoOther(
  resource: Resource,
  limit: Limit,
  baseUrl: string,
  roster: Roster | undefined,
): boolean {
  if (resource.contained === undefined) return true
  const isOurs = patientTest(limit, roster)
  return !isOurs || [...containedPatients(resource, baseUrl)].every(isOurs)
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
