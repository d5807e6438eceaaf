import { definitions, findSearchParameter } from './definitions.ts'
import { parseReference } from './reference.ts'
import { isRecord, type Resource } from './resource.ts'
import { indexParameter } from './search/index-entries.ts'

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
  switch (resource.resourceType) {
    case 'Patient':
      return new Set(typeof resource.id === 'string' ? [resource.id] : [])
    case 'Binary':
      return new Set(findPatient(resource.securityContext, baseUrl))
    default:
      return new Set(
        listCompartmentParameters(resource.resourceType).flatMap(it => findPatientsBy(resource, it, baseUrl)),
      )
  }
}

function findPatientsBy(resource: Resource, code: string, baseUrl: string): readonly string[] {
  const parameter = findSearchParameter(resource.resourceType, code)
  if (parameter === undefined)
    throw new Error(`Cannot find patients: ${resource.resourceType} has no ${code}`)
  return indexParameter(resource, parameter, baseUrl).flatMap(it =>
    it.kind === 'reference' && it.type === 'Patient' && it.id !== undefined ? [it.id] : [],
  )
}

function findPatient(reference: unknown, baseUrl: string): readonly string[] {
  if (!isRecord(reference) || typeof reference.reference !== 'string') return []
  const found = parseReference(reference.reference, baseUrl)
  return found?.type === 'Patient' ? [found.id] : []
}
