import { isFailure, isRecord } from '../core/index.ts'
import {
  type CurrentVersion,
  createMatcher,
  describeStaleness,
  type FhirProblem,
  failFor,
  findContainedPatients,
  findNamedBinaries,
  findReferredPatients,
  isFor,
  isInCompartment,
  namesOtherPatient,
  type Permission,
  type Preconditions,
  parseReference,
  type Resource,
  readsStored,
} from '../fhir/index.ts'
import type { Access, AccessFilter, Constraint, Panel, PanelMembership } from './access-filter.ts'

/** A resource, and what its check depends on besides the filter. */
interface Checked {
  readonly resource: Resource
  readonly baseUrl: string
  readonly membership: PanelMembership | undefined
}

/**
 * Whether a resource is within an access filter. A search parameter that cannot be evaluated never matches. Without panel
 * membership only the patients that a panel names are on it.
 */
export function satisfies(
  resource: Resource,
  filter: AccessFilter,
  baseUrl: string,
  membership?: PanelMembership,
): boolean {
  return filter === 'everything' || filter.some(createConstraintTest({ resource, baseUrl, membership }))
}

function createConstraintTest(checked: Checked): (constraint: Constraint) => boolean {
  let matches: ReturnType<typeof createMatcher> | undefined
  return constraint => {
    // Few constraints have a query, and every resource is checked.
    if (constraint.query) matches ??= createMatcher(checked.resource, checked.baseUrl)
    return (
      (constraint.query?.every(pair => matches?.(pair) === true) ?? true) && isOfSubject(checked, constraint)
    )
  }
}

/**
 * Whether new content may be written: it is within the filter, and none of its references is to a patient outside, not even
 * one that does not count for the compartment (`Observation.focus`, `Patient.link`).
 */
export function isWritable(
  resource: Resource,
  filter: AccessFilter,
  baseUrl: string,
  membership?: PanelMembership,
): boolean {
  if (filter === 'everything') return true
  const isWithinOne = createConstraintTest({ resource, baseUrl, membership })
  return filter.some(
    constraint =>
      isWithinOne(constraint) &&
      [...findReferredPatients(resource, baseUrl)].every(createPatientTest(constraint, membership)),
  )
}

/** Whether a constraint allows references to a patient. One without patients allows all. */
function createPatientTest(
  { patient, panel, refersTo }: Constraint,
  membership: PanelMembership | undefined,
): (id: string) => boolean {
  const only = patient ?? refersTo
  return id => (only === undefined || id === only) && (!panel || isMember(panel, id, membership))
}

function isMember(panel: Panel, patient: string, membership: PanelMembership | undefined): boolean {
  return panel.patients.has(patient) || (membership?.includes(panel, patient) ?? false)
}

/** Whether a constraint holds apart from its search parameters. */
function isOfSubject(checked: Checked, constraint: Constraint): boolean {
  const { resource, baseUrl, membership } = checked
  const { id, patient, panel, exclusive } = constraint
  if (id !== undefined && resource.id !== id) return false
  if (patient !== undefined) {
    if (!isInCompartment(resource, patient, baseUrl)) return false
    if (exclusive && namesOtherPatient(resource, patient, baseUrl)) return false
  }
  if (panel && !isOfPanel(checked, panel, exclusive)) return false
  // All contained resources are about patients of the constraint.
  return (
    resource.contained === undefined ||
    [...findContainedPatients(resource, baseUrl)].every(createPatientTest(constraint, membership))
  )
}

function isOfPanel(
  { resource, baseUrl, membership }: Checked,
  panel: Panel,
  exclusive: true | undefined,
): boolean {
  const isWrittenPatient = exclusive && resource.resourceType === 'Patient'
  const holds = (patient: string) => {
    if (panel.patients.has(patient)) return true
    if (!isMember(panel, patient, membership)) return false
    // A write checks the old and the new content itself: it neither brings a patient under an organization nor releases
    // one, and creates none under a chosen id, to which data of others may refer already.
    return (
      !isWrittenPatient ||
      isManaged(resource, panel, baseUrl) ||
      isMember({ ...panel, organizations: [] }, patient, membership)
    )
  }
  // A new Patient has no id yet: its organization alone tells.
  const isOne =
    isWrittenPatient && resource.id === undefined
      ? isManaged(resource, panel, baseUrl)
      : isInCompartment(resource, holds, baseUrl)
  return isOne && !(exclusive && namesOtherPatient(resource, holds, baseUrl))
}

function isManaged({ managingOrganization }: Resource, { organizations }: Panel, baseUrl: string): boolean {
  const text = isRecord(managingOrganization) ? managingOrganization.reference : undefined
  const reference = typeof text === 'string' ? parseReference(text, baseUrl) : undefined
  return reference?.type === 'Organization' && organizations.includes(reference.id)
}

/**
 * Whether a DocumentReference lets the caller read a Binary without security context: it names the Binary, the caller may
 * read it, and it is of a patient whose Binaries the caller may read. The FHIR API also checks that it was written after
 * the Binary: it gives no access to content that was stored later (docs/decisions/0173-binaries.md).
 */
export function grantsBinary(
  document: Resource,
  id: string,
  access: Access,
  baseUrl: string,
  membership?: PanelMembership,
): boolean {
  const filter = access.filterFor('Binary', 'r')
  const patients = filter === 'everything' ? filter : filter.filter(isByPatient)
  return (
    findNamedBinaries(document, baseUrl).has(id) &&
    satisfies(document, access.filterFor('DocumentReference', 'r'), baseUrl, membership) &&
    satisfies(document, patients, baseUrl, membership)
  )
}

/** Whether a constraint is by patient only: a query on Binaries cannot be applied to a DocumentReference. */
function isByPatient({ patient, panel, ...more }: Constraint): boolean {
  return (patient !== undefined || panel !== undefined) && Object.keys(more).length === 0
}

/** Absent resources and those outside the access fail in the same way, unless the caller may know that one is absent. */
export function failHidden(access: Access, permission: Permission, type: string, id: string): FhirProblem {
  return mayRevealAbsence(access.filterFor(type, permission), type, id)
    ? failFor('absent', { type, id })
    : failFor('outside-access')
}

/**
 * Fails if a precondition of an update does. If the id was never used, that would reveal it: a caller who may not know it
 * gets the failure of a resource outside the access.
 */
export function findUpdateConflict(
  access: Access,
  { type, id }: { readonly type: string; readonly id: string },
  before: CurrentVersion | 'deleted' | 'absent',
  preconditions: Preconditions,
): FhirProblem | undefined {
  const stale = describeStaleness(typeof before === 'object' ? before : undefined, preconditions)
  if (!stale || before !== 'absent' || mayRevealAbsence(access.filterFor(type, 'u'), type, id)) return stale
  return failFor('outside-access')
}

/**
 * Whether a caller may know that a resource is absent. A limited caller gets the same response for refused and absent
 * resources, unless the grant itself names the id (the patient of the token, the user's own resource).
 */
export function mayRevealAbsence(filter: AccessFilter, type: string, id: string): boolean {
  if (filter === 'everything') return true
  return filter.some(
    ({ id: own, patient, query }) =>
      !query &&
      (own ?? id) === id &&
      (patient === undefined ? own === id : type === 'Patient' && patient === id),
  )
}

/**
 * Fails if a patch would reveal content. A caller who may update but not read a resource must not learn its content from
 * the patch (`test`, `copy`, `move`, the reason of a failure), nor make it readable: changing the one element that a
 * granular scope filters by would reveal all the others.
 */
export function checkPatch(
  patch: unknown,
  stored: Resource,
  result: Resource | FhirProblem,
  isWithin: (permission: Permission, resource: Resource) => boolean,
): FhirProblem | undefined {
  if (isWithin('r', stored)) return isFailure(result) ? result : undefined
  if (readsStored(patch)) return failFor('outside-access')
  if (isFailure(result)) return isFor('malformed-patch', result.reason) ? result : UNUSABLE
  return isWithin('r', result) || isWithin('s', result) ? failFor('outside-access') : undefined
}

const UNUSABLE: FhirProblem = failFor('patch-unusable')
