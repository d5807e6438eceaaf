import type { Resource } from '../../fhir/index.ts'
import { type Html, html } from '../html.ts'
import { NOT_KNOWN, renderDateTime } from './date.ts'

/** What an encounter is, in words. */
export interface EncounterWords {
  readonly title: string
  /** Its class: ambulatory, inpatient and so on. */
  readonly kind: string | undefined
  readonly status: string
  readonly inProgress: boolean
  readonly start: string | undefined
  readonly end: string | undefined
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
  'entered-in-error': 'Entered in error',
}

/** The codes of v3-ActCode that R4 Encounter.class takes; their own displays are no words for a page. */
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

export function describeEncounter(resource: Resource): EncounterWords {
  const status = textAt(resource, 'status') ?? ''
  const kind = chooseWord(KIND, textAt(resource, 'class', 'code')) ?? textAt(resource, 'class', 'display')
  return {
    title: titleOf(resource) ?? kind ?? 'Encounter',
    kind,
    status: chooseWord(STATUS, status) ?? NOT_KNOWN,
    inProgress: status === 'in-progress',
    start: textAt(resource, 'period', 'start'),
    end: textAt(resource, 'period', 'end'),
  }
}

/** When it was; the end only where that is another day. */
export function formatEncounterTime({ start, end }: Pick<EncounterWords, 'start' | 'end'>): Html {
  const sameDay = end === undefined || start?.slice(0, 10) === end.slice(0, 10)
  return sameDay ? renderDateTime(start) : html`${renderDateTime(start)} to ${renderDateTime(end)}`
}

function titleOf(resource: Resource): string | undefined {
  return (
    textAt(resource, 'type', 0, 'text') ??
    textAt(resource, 'type', 0, 'coding', 0, 'display') ??
    textAt(resource, 'serviceType', 'text') ??
    textAt(resource, 'serviceType', 'coding', 0, 'display')
  )
}

function chooseWord(words: Readonly<Record<string, string>>, code: string | undefined): string | undefined {
  return code !== undefined && Object.hasOwn(words, code) ? words[code] : undefined
}

function textAt(resource: Resource, ...path: readonly (string | number)[]): string | undefined {
  const value = path.reduce<unknown>(
    (at, key) => (typeof at === 'object' && at !== null ? Reflect.get(at, key) : undefined),
    resource,
  )
  return typeof value === 'string' && value !== '' ? value : undefined
}
