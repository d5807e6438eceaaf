import { findOwn } from '../../core/index.ts'
import type { Resource } from '../../fhir/index.ts'
import { type Html, html, NOT_KNOWN, NOT_RECORDED, renderDateTime } from '../ui/index.ts'

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
  return code === undefined ? undefined : findOwn(terms, code)
}

function readTextAt(resource: Resource, ...path: readonly (string | number)[]): string | undefined {
  const value = path.reduce<unknown>(
    (inner, key) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, key) : undefined),
    resource,
  )
  return typeof value === 'string' && value !== '' ? value : undefined
}

/**
 * Units in a form that cannot be misread: `mcg` can be read as `mg` and `U` as a zero, so both are written out. RxNorm's
 * upper case becomes the usual spelling.
 */
const UNITS: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/(?<=\d\s?|\/)(?:mcg|µg|μg|ug)\b/gi, 'microgram'],
  [/(?<=\d\s?)(?:\[iU\]|iu|u|unt)(?=\W|$)/gi, 'units'],
  [/(?<=\/\s?)(?:unt|iu)\b/gi, 'units'],
  [/(?<=\d\s?|\/)mg\b/gi, 'mg'],
  [/(?<=\d\s?|\/)ml\b/gi, 'mL'],
  [/(?<=\d\s?|\/)meq\b/gi, 'mEq'],
  [/(?<=\d\s?|\/)mmol\b/gi, 'mmol'],
  [/(?<=\d\s?|\/)g\b/gi, 'g'],
  [/(?<=\/)actuat\b/gi, 'dose'],
  [/(?<=\d\s?|\/)hr\b/gi, 'hour'],
]

/** `5.0` can be misread as 50, and `.5` as 5. */
function writeSafeNumbers(text: string): string {
  return text
    .replace(/(?<![\d.])\.(\d)/g, '0.$1')
    .replace(/(?<=\d)\.\d+/g, fraction => fraction.replace(/(?<!0)0+$/, '').replace(/^\.$/, ''))
}

/** Writes strengths and doses without the abbreviations and zeros that lead to tenfold errors. */
export function formatDose(text: string): string {
  const spaced = text.replace(/(\d)(mcg|µg|μg|ug|mg|ml|g|iu|units?)\b/gi, '$1 $2')
  return UNITS.reduce((rest, [pattern, instead]) => rest.replace(pattern, instead), writeSafeNumbers(spaced))
}

/** Formats name, strength and form: `Levothyroxine 75 microgram tablet`. */
export function formatMedicine(name: string | undefined): string {
  const text = formatDose((name ?? '').trim().replace(/\s+/g, ' '))
  return text === '' ? NOT_RECORDED : `${text[0]?.toUpperCase()}${text.slice(1)}`
}
