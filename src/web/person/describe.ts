import {
  formatAge,
  formatDate,
  type Html,
  html,
  NOT_KNOWN,
  NOT_RECORDED,
  renderDate,
  renderIcon,
} from '../ui/index.ts'
import { hasSameNameAndBirth, type Person, type PersonName } from './person.ts'

const NO_NAME = 'Name not recorded'

/** Formats a name for a title or an `aria-label`: `Juniper, Alba (Ms)`. */
export function formatName({ family, given, title, text }: PersonName): string {
  const titled = title === undefined ? '' : ` (${title})`
  if (family !== undefined && given !== undefined) return `${family}, ${given}${titled}`
  const only = family ?? given ?? text
  return only === undefined ? NO_NAME : `${only}${titled}`
}

/** Renders FAMILY, Given (Title). CSS makes the capitals, so that copies and screen readers keep the spelling. */
export function renderName(name: PersonName, options: { readonly withTitle?: boolean } = {}): Html {
  const { family, given, title, text } = name
  const titled =
    options.withTitle === true && title !== undefined && html` <span class="patient__title">(${title})</span>`
  if (family === undefined) return html`${given ?? text ?? NO_NAME}${titled}`
  return html`<span class="family">${family}</span>${given !== undefined && `, ${given}`}${titled}`
}

const SEXES: ReadonlyMap<string, string> = new Map([
  ['male', 'Male'],
  ['female', 'Female'],
  ['other', 'Other'],
  ['unknown', NOT_KNOWN],
])

export function formatSex(gender: string | undefined): string {
  if (gender === undefined) return NOT_RECORDED
  return SEXES.get(gender) ?? NOT_KNOWN
}

/** Returns the medical record number or, in its absence, the FHIR id, with its label. */
export function chooseRecordNumber({ mrn, id }: Person): {
  readonly label: 'MRN' | 'FHIR id'
  readonly value: string
} {
  return mrn === undefined ? { label: 'FHIR id', value: id } : { label: 'MRN', value: mrn }
}

/** Formats the present age or, after death, `80 at death`. */
export function computeAge({ born, death }: Person, now: number): string {
  if (!death) return formatAge(born, now)
  const age = death.date === undefined ? NOT_KNOWN : formatAge(born, death.date)
  return age === NOT_KNOWN ? NOT_KNOWN : `${age.replace(/ years$/, '')} at death`
}

/** Returns `Died 02-Feb-2025`, `Died` if the date is not recorded, or undefined for a living patient. */
export function formatDeath({ death }: Person): string | undefined {
  if (!death) return undefined
  return death.date === undefined ? 'Died' : `Died ${formatDate(death.date)}`
}

export const INACTIVE = 'Inactive record'

/** Renders a value, and marks the texts for a missing one. */
export function renderValue(text: string): Html {
  const missing = text === NOT_RECORDED || text === NOT_KNOWN
  return missing ? html`<span class="unknown">${text}</span>` : html`${text}`
}

/** Lists the facts that identify a patient, always in this order. */
export function listFacts(
  person: Person,
  now: number,
  isForPatients = false,
): readonly (readonly [label: string, value: Html])[] {
  const { label, value } = chooseRecordNumber(person)
  return [
    ...renderBirth(person, now),
    ['Sex', renderValue(formatSex(person.gender))],
    ...(isForPatients ? listOwnNumber(person) : [[label, html`${value}`] as const]),
  ]
}

/** In the words of patients, who know no FHIR id. */
function listOwnNumber({ mrn }: Person): readonly (readonly [string, Html])[] {
  return mrn === undefined ? [] : [['Record number', html`${mrn}`]]
}

function renderBirth(person: Person, now: number): readonly (readonly [string, Html])[] {
  const { born, death } = person
  if (death) {
    const age = death.date === undefined ? NOT_KNOWN : formatAge(born, death.date)
    return [
      ['Born', renderDate(born)],
      ['Age at death', renderValue(age)],
    ]
  }
  const age = formatAge(born, now)
  return [['Born', age === NOT_KNOWN ? renderDate(born) : html`${renderDate(born)} (${age})`]]
}

export interface BannerOptions {
  /** Whether a patient or relative reads it. */
  readonly isForPatients?: boolean
  readonly now: number
  /** The patient's name is the heading of the page in the app, and of a section in the portal. */
  readonly heading: 'h1' | 'h2' | 'p'
  /** The id of the heading, for `aria-labelledby`. */
  readonly id?: string
  /** Whether the focus goes to the patient's name when the page opens. */
  readonly focused?: boolean
  /** Further facts at the end, such as allergies. */
  readonly more?: readonly (readonly [label: string, value: Html])[]
  /** Whether the banner has the width of the page and stays visible, as in the app. */
  readonly sticky?: boolean
}

/** Renders the patient banner: name, born (age), sex, MRN. */
export function renderPatientBanner(person: Person, options: BannerOptions): Html {
  const { now, id, more = [], sticky = false, focused = false, isForPatients } = options
  const marks = [formatDeath(person) ?? [], person.inactive ? INACTIVE : []].flat()
  const name = html`${renderName(person.name, { withTitle: true })}${marks.map(mark => html` <span class="patient__mark">${mark}</span>`)}`
  const facts = [...listFacts(person, now, isForPatients), ...more].map(
    ([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`,
  )
  const inside = html`${renderHeading(options.heading, id, focused, name)}<dl class="facts">${facts}</dl>`
  return sticky
    ? html`<section class="patient patient--sticky" aria-label="Patient"><div class="wrap patient__in">${inside}</div></section>`
    : html`<div class="patient"><div class="patient__in">${inside}</div></div>`
}

function renderHeading(
  level: BannerOptions['heading'],
  id: string | undefined,
  focused: boolean,
  name: Html,
): Html {
  const named = html`${id !== undefined && html` id="${id}"`}${focused && html` tabindex="-1" autofocus`}`
  switch (level) {
    case 'h1':
      return html`<h1 class="patient__name"${named}>${name}</h1>`
    case 'h2':
      return html`<h2 class="patient__name"${named}>${name}</h2>`
    case 'p':
      return html`<p class="patient__name"${named}>${name}</p>`
  }
}

/** Renders a warning with the names of patients who are similar to this one, or nothing if there are none. */
export function renderAlikeWarning(
  person: Person,
  others: readonly Person[],
  isForPatients = false,
): Html | undefined {
  if (others.length === 0) return undefined
  return html`<p class="patient__warn">${renderIcon('warning')}<span>Similar name: ${listAlike(person, others, isForPatients)}</span></p>`
}

/** Lists similar patients by name, date of birth and number, and says if only the number differs. */
export function listAlike(person: Person, others: readonly Person[], isForPatients = false): Html {
  return html`${others.map(
    (other, at) =>
      html`${at > 0 && '; '}${renderName(other.name)}, born ${renderDate(other.born)}${renderNumber(other, isForPatients)}${hasSameNameAndBirth(person, other) && ' (same name and birth date)'}`,
  )}`
}

function renderNumber(person: Person, isForPatients: boolean): Html | undefined {
  const { label, value } = chooseRecordNumber(person)
  if (!isForPatients) return html`, <span class="number">${label} ${value}</span>`
  return person.mrn === undefined
    ? undefined
    : html`, <span class="number">record number ${person.mrn}</span>`
}
