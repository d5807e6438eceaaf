import type { FhirResource } from 'fhir/r4.js'
import type { Resource } from '../../fhir/index.ts'
import { type SampleOptions, samplePatients } from '../sample-patients.ts'

type Typed<T extends string> = Extract<FhirResource, { resourceType: T }> & { id: string }

/** A sample to look into, by type and by patient. */
export interface Sample {
  readonly everything: readonly Resource[]
  all<T extends FhirResource['resourceType']>(type: T): Typed<T>[]
  /** The resources of a type about a patient. */
  of<T extends FhirResource['resourceType']>(patient: string, type: T): Typed<T>[]
}

export function sampleOf(options: SampleOptions): Sample {
  const resources = [...samplePatients(options)]
  const byType = Map.groupBy(resources, it => it.resourceType)
  const byPatient = Map.groupBy(resources, it => `${it.resourceType} ${aboutOf(it)}`)
  // The tests validate the resources.
  const typed = <T extends string>(of: readonly Resource[] | undefined) => (of ?? []) as unknown as Typed<T>[]
  return {
    everything: resources,
    all: type => typed(byType.get(type)),
    of: (patient, type) => typed(byPatient.get(`${type} Patient/${patient}`)),
  }
}

function aboutOf(resource: object): string | undefined {
  const { subject, patient } = resource as {
    subject?: { reference?: string }
    patient?: { reference?: string }
  }
  return (subject ?? patient)?.reference
}

/** Every reference of a resource. */
export function* referencesOf(value: Resource | unknown): Generator<string> {
  if (typeof value !== 'object' || value === null) return
  for (const [key, below] of Object.entries(value)) {
    if (key === 'reference' && typeof below === 'string') yield below
    else yield* referencesOf(below)
  }
}
