import {
  createMatcher,
  findCompartmentPatients,
  findContainedPatients,
  findReferredPatients,
  isRecord,
  namesOtherPatient,
  parseReference,
  type Resource,
} from '../fhir/index.ts'
import type { AccessFilter, Constraint } from './access-filter.ts'
import type { Panel, PanelMembership } from './policy/panel.ts'

/**
 * Whether a resource is reached. A search parameter that cannot be evaluated on it reaches nothing; without a roster
 * only the patients whom a panel names are on it.
 */
export function satisfies(
  resource: Resource,
  filter: AccessFilter,
  baseUrl: string,
  membership?: PanelMembership,
): boolean {
  if (filter === 'everything') return true
  const isWithinOne = createConstraintTest(resource, baseUrl, membership)
  return filter.some(isWithinOne)
}

/** The test of one limit after another: many granular scopes differ in nothing but their search parameters. */
function createConstraintTest(
  resource: Resource,
  baseUrl: string,
  membership: PanelMembership | undefined,
): (constraint: Constraint) => boolean {
  const matches = createMatcher(resource, baseUrl)
  let last: { readonly constraint: Constraint; readonly isSubject: boolean } | undefined
  return constraint => {
    if (!(constraint.query ?? []).every(pair => matches(pair) === true)) return false
    if (!last || !hasSameSubject(last.constraint, constraint))
      last = { constraint, isSubject: isOfSubject(resource, constraint, baseUrl, membership) }
    return last.isSubject
  }
}

function hasSameSubject(a: Constraint, b: Constraint): boolean {
  return (
    a.patient === b.patient &&
    a.panel === b.panel &&
    a.exclusive === b.exclusive &&
    a.refersTo === b.refersTo &&
    a.id === b.id
  )
}

/**
 * Whether new content may be written: it is within the reach, and no reference in it, also of an element that puts it
 * into nobody's compartment (`Observation.focus`, `Patient.link`), is to a patient outside.
 */
export function isWritable(
  resource: Resource,
  filter: AccessFilter,
  baseUrl: string,
  membership?: PanelMembership,
): boolean {
  if (filter === 'everything') return true
  const isWithinOne = createConstraintTest(resource, baseUrl, membership)
  return filter.some(
    constraint => isWithinOne(constraint) && refersToNoOther(resource, constraint, baseUrl, membership),
  )
}

function refersToNoOther(
  resource: Resource,
  constraint: Constraint,
  baseUrl: string,
  membership: PanelMembership | undefined,
): boolean {
  const isOurs = createPatientTest(constraint, membership)
  return !isOurs || [...findReferredPatients(resource, baseUrl)].every(isOurs)
}

/** Tells whether a patient is one of the limit; undefined where the limit is to no patients. */
function createPatientTest(
  { patient, panel, refersTo }: Constraint,
  membership: PanelMembership | undefined,
): ((id: string) => boolean) | undefined {
  const only = patient ?? refersTo
  if (only === undefined && !panel) return undefined
  return id =>
    (only === undefined || id === only) &&
    (!panel || panel.patients.has(id) || (membership?.includes(panel, id) ?? false))
}

/** Whether the limit holds apart from its search parameters. */
function isOfSubject(
  resource: Resource,
  constraint: Constraint,
  baseUrl: string,
  membership: PanelMembership | undefined,
): boolean {
  if (constraint.id !== undefined && resource.id !== constraint.id) return false
  if (constraint.patient !== undefined && !findCompartmentPatients(resource, baseUrl).has(constraint.patient))
    return false
  if (
    constraint.exclusive &&
    constraint.patient !== undefined &&
    namesOtherPatient(resource, constraint.patient, baseUrl)
  )
    return false
  if (constraint.panel && !isOfPanel(resource, constraint.panel, constraint.exclusive, baseUrl, membership))
    return false
  return containsNoOther(resource, constraint, baseUrl, membership)
}

/** Whether everything that the resource contains is about patients of the limit. */
function containsNoOther(
  resource: Resource,
  constraint: Constraint,
  baseUrl: string,
  membership: PanelMembership | undefined,
): boolean {
  if (resource.contained === undefined) return true
  const isOurs = createPatientTest(constraint, membership)
  return !isOurs || [...findContainedPatients(resource, baseUrl)].every(isOurs)
}

function isOfPanel(
  resource: Resource,
  panel: Panel,
  exclusive: true | undefined,
  baseUrl: string,
  membership: PanelMembership | undefined,
): boolean {
  const holds = (patient: string) => {
    if (panel.patients.has(patient)) return true
    if (!exclusive || resource.resourceType !== 'Patient')
      return membership?.includes(panel, patient) ?? false
    // The content itself is judged, old and new: no write brings a patient under an organization or lets one go. Nor
    // does it make one under a chosen id, to which others' data may refer already.
    const isHeld = membership?.includes(panel, patient) ?? false
    return (
      isHeld &&
      (isManaged(resource, panel, baseUrl) ||
        (membership?.includes({ ...panel, organizations: [] }, patient) ?? false))
    )
  }
  // A new Patient has no id yet: its organization alone tells.
  const isNew = exclusive && resource.resourceType === 'Patient' && resource.id === undefined
  const isOne = isNew
    ? isManaged(resource, panel, baseUrl)
    : [...findCompartmentPatients(resource, baseUrl)].some(holds)
  return isOne && !(exclusive && namesOtherPatient(resource, holds, baseUrl))
}

function isManaged({ managingOrganization }: Resource, { organizations }: Panel, baseUrl: string): boolean {
  const text = isRecord(managingOrganization) ? managingOrganization.reference : undefined
  const reference = typeof text === 'string' ? parseReference(text, baseUrl) : undefined
  return reference?.type === 'Organization' && organizations.includes(reference.id)
}
