import { isRecord, remember } from '../core/index.ts'
import { definitions, findSearchParameter } from './definitions.ts'
import { parseReference } from './reference.ts'
import { isResource, type Resource } from './resource.ts'
import { type CompiledPath, evaluatePath, findPaths, removeTargets } from './search/path.ts'

/**
 * Differences from the R4 CompartmentDefinition (PATIENT-2). A link to a patient is not part of that patient's record.
 * Task is as in R5: R4 omits it, although it has a patient (docs/decisions/0011-patient-compartment.md).
 */
const departures: Readonly<Record<string, readonly string[]>> = {
  Patient: [],
  Group: [],
  Device: ['patient'],
  Task: ['patient', 'focus'],
}

// A Map: the type comes from another server and may be the name of a member that every object has.
const parameters: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({ ...definitions.patientCompartment, ...departures }),
)

/**
 * The search parameters that put a resource of a type into the compartments of the patients they refer to. Two types
 * have none: a Patient is in its own compartment, a Binary in that of its `securityContext`.
 */
export function listCompartmentParameters(type: string): readonly string[] {
  return parameters.get(type) ?? []
}

/** The ids of the patients in whose compartments the resource is. */
export function findCompartmentPatients(resource: Resource, baseUrl: string): ReadonlySet<string> {
  const patients = new Set<string>()
  isInCompartment(resource, id => !patients.add(id).has(id), baseUrl)
  return patients
}

/** The ids of the patients that a resource and its contained resources are about. */
export function findContentPatients(resource: Resource, baseUrl: string): ReadonlySet<string> {
  const patients = findCompartmentPatients(resource, baseUrl)
  if (resource.contained === undefined) return patients
  const all = new Set([...patients, ...findContainedPatients(resource, baseUrl)])
  all.delete(UNKNOWN_PATIENT)
  return all
}

/** Whether the resource is in the compartment of the patient, or of a patient for whom the test holds. */
export function isInCompartment(
  resource: Resource,
  patient: string | ((id: string) => boolean),
  baseUrl: string,
): boolean {
  const isOurs = typeof patient === 'string' ? (id: string) => id === patient : patient
  if (resource.resourceType === 'Patient') return typeof resource.id === 'string' && isOurs(resource.id)
  return hasMemberReference(resource, text => {
    const found = parseReference(text, baseUrl)
    return found?.type === 'Patient' && isOurs(found.id)
  })
}

/** Whether the test holds for one of the references that put a resource into the compartments of patients. */
function hasMemberReference(resource: Resource, test: (reference: string) => boolean): boolean {
  const holds = (value: unknown) =>
    isRecord(value) && typeof value.reference === 'string' && test(value.reference)
  if (resource.resourceType === 'Binary') return holds(resource.securityContext)
  return findMemberPaths(resource.resourceType).some(path => evaluatePath(resource, path).some(holds))
}

const memberPaths = new Map<string, readonly CompiledPath[]>()

/**
 * The paths of `listCompartmentParameters`, each once. They select references of every type: one of another type puts a
 * resource into no compartment, and one of unknown type may be resolved to a patient by another server.
 */
function findMemberPaths(type: string): readonly CompiledPath[] {
  const codes = parameters.get(type)
  if (!codes) return []
  return remember(memberPaths, type, () => {
    const paths = codes.flatMap(code => {
      const parameter = findSearchParameter(type, code)
      if (!parameter) throw new Error(`Cannot find patients: ${type} has no ${code}`)
      return findPaths(type, parameter).map(removeTargets)
    })
    return [...new Map(paths.map(path => [JSON.stringify(path.moves), path])).values()]
  })
}

// The URL of a resource on another server.
const RESOURCE_URL =
  /^https?:\/\/.*\/([A-Z][A-Za-z]+)\/[A-Za-z0-9\-.]{1,64}(?:\/_history\/[A-Za-z0-9\-.]{1,64})?$/

/**
 * Whether a compartment reference of the resource names another patient, on this server or elsewhere, or names a patient who
 * cannot be identified (`urn:uuid:…`, `Patient?identifier=…`). Such a resource does not belong to one patient alone (WRITE-2).
 */
export function namesOtherPatient(
  resource: Resource,
  patient: string | ((id: string) => boolean),
  baseUrl: string,
): boolean {
  const isOurs = typeof patient === 'string' ? (id: string) => id === patient : patient
  return hasMemberReference(resource, text => {
    const named = findNamedPatient(text, baseUrl)
    return named === UNKNOWN_PATIENT || (named !== undefined && !isOurs(named))
  })
}

/** The patient that a compartment reference names, or `UNKNOWN_PATIENT`. Undefined if it names none. */
function findNamedPatient(reference: string, baseUrl: string): string | undefined {
  if (reference === '' || reference.startsWith('#')) return undefined
  const local = parseReference(reference, baseUrl)
  if (local) return local.type === 'Patient' ? local.id : undefined
  // `Reference.type` is not trusted.
  const type = RESOURCE_URL.exec(reference)?.[1]
  return type === undefined || type === 'Patient' ? UNKNOWN_PATIENT : undefined
}

/** Stands for a patient of another server, or one that a reference does not identify. No patient has this id. */
export const UNKNOWN_PATIENT = ''

/**
 * The ids of the patients that the contained resources are about, at any depth. A contained resource is part of its
 * container (R4 references.html#contained), so a caller who may see the one sees the other.
 */
export function findContainedPatients({ contained }: Resource, baseUrl: string): ReadonlySet<string> {
  const patients = new Set<string>()
  if (contained === undefined) return patients
  if (!Array.isArray(contained) || !contained.every(isResource)) patients.add(UNKNOWN_PATIENT)
  for (const resource of listResources(contained))
    hasMemberReference(resource, text => {
      const named = findNamedPatient(text, baseUrl)
      if (named !== undefined) patients.add(named)
      return false
    })
  return patients
}

/** Every resource inside a value: contained ones, and those of a Bundle or of Parameters. */
function* listResources(value: unknown): Generator<Resource> {
  const pending: unknown[] = [value]
  while (pending.length > 0) {
    const next = pending.pop()
    if (typeof next !== 'object' || next === null) continue
    if (isResource(next)) yield next
    for (const member of Object.values(next)) pending.push(member)
  }
}

/** Every patient that a reference anywhere in the content names, also in an extension or a contained resource. */
export function findReferredPatients(content: unknown, baseUrl: string): ReadonlySet<string> {
  const patients = new Set<string>()
  const pending: unknown[] = [content]
  while (pending.length > 0) {
    const next = pending.pop()
    if (typeof next !== 'object' || next === null) continue
    for (const [name, value] of Object.entries(next))
      if (name !== 'reference' || typeof value !== 'string') pending.push(value)
      else for (const id of findPatient(value, baseUrl)) patients.add(id)
  }
  return patients
}

// A conditional reference (R4 http.html#trules).
const CONDITIONAL = /^([A-Z][A-Za-z]+)\?/

/**
 * The patient that a reference names. A reference to a Patient that cannot be resolved here (`Patient?…`, `Patient/%31`,
 * another server's) names an unknown patient; an identifier, a `urn:` and a contained resource (`#p`) name no patient of this
 * server.
 */
function findPatient(reference: string, baseUrl: string): readonly string[] {
  const local = parseReference(reference, baseUrl)
  const type = local?.type ?? RESOURCE_URL.exec(reference)?.[1] ?? CONDITIONAL.exec(reference)?.[1]
  if (type !== undefined && type !== 'Patient') return []
  if (local) return [local.id]
  return !/^(?:urn:|#)/.test(reference) && /patient/i.test(decodeAscii(reference)) ? [UNKNOWN_PATIENT] : []
}

function decodeAscii(text: string): string {
  return text.replace(/%([0-7][0-9a-f])/gi, (_all, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
}
