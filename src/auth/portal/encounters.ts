import { isRecord, parseReference, type Resource } from '../../fhir/index.ts'
import { describeEncounter, type EncounterDescription } from '../../web/index.ts'

/** An encounter in the portal. */
export interface Encounter extends EncounterDescription {
  readonly id: string
  /** Undefined if the subject is not a Patient of this server. */
  readonly patientId: string | undefined
  readonly who: string | undefined
}

export function toEncounter(resource: Resource, fhirBaseUrl: string): Encounter {
  const { reference } = toRecord(resource.subject)
  const subject = typeof reference === 'string' ? parseReference(reference, fhirBaseUrl) : undefined
  return {
    ...describeEncounter(resource),
    id: resource.id ?? '',
    patientId: subject?.type === 'Patient' ? subject.id : undefined,
    who: findParticipant(resource.participant),
  }
}

/** In progress first, then the newest. */
export function compareUrgency(a: Encounter, b: Encounter): number {
  return Number(b.inProgress) - Number(a.inProgress) || (b.start ?? '').localeCompare(a.start ?? '')
}

function findParticipant(participants: unknown): string | undefined {
  const [first] = Array.isArray(participants) ? participants : []
  const { display } = toRecord(toRecord(first).individual)
  return typeof display === 'string' && display !== '' ? display : undefined
}

function toRecord(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {}
}
