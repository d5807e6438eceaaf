import { isRecord, parseReference, type Resource } from '../../fhir/index.ts'
import { type EncounterWords, encounterWords } from '../../web/index.ts'

/** An encounter as the portal shows it. */
export interface Encounter extends EncounterWords {
  readonly id: string
  /** The patient it is about, if that is one of this server. */
  readonly patientId: string | undefined
  readonly who: string | undefined
}

export function encounterOf(resource: Resource, fhirBaseUrl: string): Encounter {
  const { reference } = fieldsOf(resource.subject)
  const subject = typeof reference === 'string' ? parseReference(reference, fhirBaseUrl) : undefined
  return {
    ...encounterWords(resource),
    id: resource.id ?? '',
    patientId: subject?.type === 'Patient' ? subject.id : undefined,
    who: whoIn(resource.participant),
  }
}

/** In progress first, then the newest. */
export function byUrgency(a: Encounter, b: Encounter): number {
  return Number(b.inProgress) - Number(a.inProgress) || (b.start ?? '').localeCompare(a.start ?? '')
}

function whoIn(participants: unknown): string | undefined {
  const [first] = Array.isArray(participants) ? participants : []
  const { display } = fieldsOf(fieldsOf(first).individual)
  return typeof display === 'string' && display !== '' ? display : undefined
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {}
}
