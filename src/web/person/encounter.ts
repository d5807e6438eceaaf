import type { Resource } from '../../fhir/index.ts'
import { type Html, html } from '../html.ts'
import { NOT_KNOWN, renderDateTime } from './date.ts'

export interface EncounterDescription {
  readonly title: string
  /** Its class: ambulatory, inpatient and so on. */
  readonly kind: string | undefined
  readonly status: string
  readonly inProgress: boolean
  readonly start: string | undefined
  readonly end: string | undefined
}

/** Terms for R4 EncounterStatus. */
const STATUS: Readonly<Record<string, string>> = {
  planned: 'Planned',
  arrived: 'Arrived',
  triaged: 'Triaged',
  'in-progress': 'In progress',
  onleave: 'On leave',
  finished: 'Finished',
  cancelled: 'Cancelled',
  'entered-in-error': 'Entered in error',
}

/** Terms for the v3-ActCode codes of R4 Encounter.class, whose own displays are not suitable for a page. */
const KIND: Readonly<Record<string, string>> = {
  AMB: 'Ambulatory',
  EMER: 'Emergency',
  FLD: 'In the field',
  HH: 'At home',
  IMP: 'Inpatient',
  ACUTE: 'Inpatient, acute',
  NONAC: 'Inpatient, not acute',
  OBSENC: 'Observation',
  PRENC: 'Before admission',
  SS: 'Short stay',
  VR: 'Virtual',
}

export function describeEncounter(resource: Resource): EncounterDescription {
  const status = readTextAt(resource, 'status') ?? ''
  const kind =
    findTerm(KIND, readTextAt(resource, 'class', 'code')) ?? readTextAt(resource, 'class', 'display')
  return {
    title: findTitle(resource) ?? kind ?? 'Encounter',
    kind,
    status: findTerm(STATUS, status) ?? NOT_KNOWN,
    inProgress: status === 'in-progress',
    start: readTextAt(resource, 'period', 'start'),
    end: readTextAt(resource, 'period', 'end'),
  }
}

/** Renders the start of an encounter, and its end if that is on another day. */
export function formatEncounterTime({ start, end }: Pick<EncounterDescription, 'start' | 'end'>): Html {
  const sameDay = end === undefined || start?.slice(0, 10) === end.slice(0, 10)
  return sameDay ? renderDateTime(start) : html`${renderDateTime(start)} to ${renderDateTime(end)}`
}

function findTitle(resource: Resource): string | undefined {
  return (
    readTextAt(resource, 'type', 0, 'text') ??
    readTextAt(resource, 'type', 0, 'coding', 0, 'display') ??
    readTextAt(resource, 'serviceType', 'text') ??
    readTextAt(resource, 'serviceType', 'coding', 0, 'display')
  )
}

function findTerm(terms: Readonly<Record<string, string>>, code: string | undefined): string | undefined {
  return code !== undefined && Object.hasOwn(terms, code) ? terms[code] : undefined
}

function readTextAt(resource: Resource, ...path: readonly (string | number)[]): string | undefined {
  const value = path.reduce<unknown>(
    (at, key) => (typeof at === 'object' && at !== null ? Reflect.get(at, key) : undefined),
    resource,
  )
  return typeof value === 'string' && value !== '' ? value : undefined
}
