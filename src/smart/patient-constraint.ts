import { listCompartmentParameters, type Permission } from '../fhir/index.ts'
import type { Constraint } from './access-filter.ts'

// Shared by nature, so read and searched under a `patient/` scope, never written.
const SHARED: ReadonlySet<string> = new Set([
  'Practitioner',
  'PractitionerRole',
  'Organization',
  'Location',
  'Medication',
  'HealthcareService',
  // Conformance and terminology: definitions, which refer to no patient. An ImplementationGuide may (its examples).
  'CapabilityStatement',
  'CodeSystem',
  'CompartmentDefinition',
  'ConceptMap',
  'GraphDefinition',
  'MessageDefinition',
  'NamingSystem',
  'OperationDefinition',
  'Questionnaire',
  'SearchParameter',
  'StructureDefinition',
  'StructureMap',
  'TerminologyCapabilities',
  'ValueSet',
])

/** What a `patient/` scope for one patient reaches of a type before its query, or undefined for nothing. */
export function findPatientConstraint(
  patient: string,
  type: string,
  permission: Permission,
): Constraint | undefined {
  const reading = permission === 'r' || permission === 's'
  if (SHARED.has(type)) return reading ? {} : undefined
  // A new Patient is in no compartment; `patient/Patient.c` may create one nevertheless (WRITE-3).
  if (type === 'Patient' && permission === 'c') return { refersTo: patient }
  if (!hasCompartment(type)) return undefined
  return reading ? { patient } : { patient, exclusive: true }
}

/** Whether resources of a type can be in a patient's compartment at all. */
export function hasCompartment(type: string): boolean {
  // A Patient is in its own, a Binary in that of its `securityContext`: no search parameter tells so.
  return type === 'Patient' || type === 'Binary' || listCompartmentParameters(type).length > 0
}
