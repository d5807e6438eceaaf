import { parseReference, type Resource } from '../../fhir/index.ts'

/** An encounter as the portal shows it. */
export interface Encounter {
  readonly id: string
  /** The patient it is about, if that is one of this server. */
  readonly patientId: string | undefined
  readonly title: string
  readonly status: string
  readonly inProgress: boolean
  readonly start: string | undefined
  readonly end: string | undefined
  readonly who: string | undefined
}

/** R4 EncounterStatus in words. */
const STATUS: Readonly<Record<string, string>> = {
  planned: 'Planned',
  arrived: 'Arrived',
  triaged: 'Triaged',
  'in-progress': 'In progress',
  onleave: 'On leave',
  finished: 'Finished',
  cancelled: 'Cancelled',
}

export function encounterOf(resource: Resource, fhirBaseUrl: string): Encounter {
  const subject = textAt(resource, 'subject', 'reference')
  const reference = subject === undefined ? undefined : parseReference(subject, fhirBaseUrl)
  const status = textAt(resource, 'status') ?? ''
  return {
    id: resource.id ?? '',
    patientId: reference?.type === 'Patient' ? reference.id : undefined,
    title: titleOf(resource),
    status: (Object.hasOwn(STATUS, status) ? STATUS[status] : undefined) ?? 'Not known',
    inProgress: status === 'in-progress',
    start: textAt(resource, 'period', 'start'),
    end: textAt(resource, 'period', 'end'),
    who: textAt(resource, 'participant', 0, 'individual', 'display'),
  }
}

/** In progress first, then the newest. */
export function byUrgency(a: Encounter, b: Encounter): number {
  return Number(b.inProgress) - Number(a.inProgress) || (b.start ?? '').localeCompare(a.start ?? '')
}

function titleOf(resource: Resource): string {
  return (
    textAt(resource, 'type', 0, 'text') ??
    textAt(resource, 'type', 0, 'coding', 0, 'display') ??
    textAt(resource, 'serviceType', 'text') ??
    textAt(resource, 'serviceType', 'coding', 0, 'display') ??
    textAt(resource, 'class', 'display') ??
    'Encounter'
  )
}

function textAt(resource: Resource, ...path: readonly (string | number)[]): string | undefined {
  const value = path.reduce<unknown>(
    (at, key) => (typeof at === 'object' && at !== null ? Reflect.get(at, key) : undefined),
    resource,
  )
  return typeof value === 'string' && value !== '' ? value : undefined
}
