import { definitions, findSearchParameter } from './definitions.ts'
import type { Resource } from './r4.ts'
import { isRecord } from './record.ts'
import { parseReference } from './reference.ts'
import { entriesOf } from './search/index-entries.ts'

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

// A Map: what another server calls a type may be the name of something that every object has.
const parameters: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({ ...definitions.patientCompartment, ...departures }),
)

/**
 * The search parameters of a type that put a resource into the compartment of the patients they point to. Two types
 * are not told by a parameter: a Patient is in its own compartment, a Binary in that of its `securityContext`.
 */
export function listCompartmentParameters(type: string): readonly string[] {
  return parameters.get(type) ?? []
}

/** The ids of the patients in whose compartment the resource is; of a Patient, its own. */
export function patientsOf(resource: Resource, baseUrl: string): ReadonlySet<string> {
  switch (resource.resourceType) {
    case 'Patient':
      return new Set(typeof resource.id === 'string' ? [resource.id] : [])
    case 'Binary':
      return new Set(findPatient(resource.securityContext, baseUrl))
    default:
      return new Set(
        listCompartmentParameters(resource.resourceType).flatMap(it => patientsBy(resource, it, baseUrl)),
      )
  }
}

function patientsBy(resource: Resource, code: string, baseUrl: string): readonly string[] {
  const parameter = findSearchParameter(resource.resourceType, code)
  if (parameter === undefined)
    throw new Error(`Cannot tell patients: ${resource.resourceType} has no ${code}`)
  return entriesOf(resource, parameter, baseUrl).flatMap(it =>
    it.kind === 'reference' && it.type === 'Patient' && it.id !== undefined ? [it.id] : [],
  )
}

function findPatient(reference: unknown, baseUrl: string): readonly string[] {
  if (!isRecord(reference) || typeof reference.reference !== 'string') return []
  const found = parseReference(reference.reference, baseUrl)
  return found?.type === 'Patient' ? [found.id] : []
}
