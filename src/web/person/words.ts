import { type Html, html } from '../html.ts'
import { formatAge } from './age.ts'
import { formatDate, NOT_KNOWN, NOT_RECORDED, renderDate } from './date.ts'
import type { Person, PersonName } from './person.ts'

const NO_NAME = 'Name not recorded'

/** `Juniper, Alba (Ms)`: for a title or an `aria-label`. The capitals of the family name are CSS (`nameHtml`). */
export function formatName({ family, given, title, text }: PersonName): string {
  const titled = title === undefined ? '' : ` (${title})`
  if (family !== undefined && given !== undefined) return `${family}, ${given}${titled}`
  const only = family ?? given ?? text
  return only === undefined ? NO_NAME : `${only}${titled}`
}

/** FAMILY, Given (Title). The capitals are CSS, so that copies and screen readers keep the spelling. */
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

/** FHIR `gender` in full. */
export function formatSex(gender: string | undefined): string {
  if (gender === undefined) return NOT_RECORDED
  return SEXES.get(gender) ?? NOT_KNOWN
}

/** The medical record number, or else the FHIR id; always with its label. */
export function recordNumber({ mrn, id }: Person): {
  readonly label: 'MRN' | 'FHIR id'
  readonly value: string
} {
  return mrn === undefined ? { label: 'FHIR id', value: id } : { label: 'MRN', value: mrn }
}

/** The age now or, after death, `80 at death`. */
export function computeAge({ born, death }: Person, now: number): string {
  if (!death) return formatAge(born, now)
  const age = death.date === undefined ? NOT_KNOWN : formatAge(born, death.date)
  return age === NOT_KNOWN ? NOT_KNOWN : `${age.replace(/ years$/, '')} at death`
}

/** `Died 02-Feb-2025`, or `Died` where the date is not recorded; nothing for the living. */
export function formatDeath({ death }: Person): string | undefined {
  if (!death) return undefined
  return death.date === undefined ? 'Died' : `Died ${formatDate(death.date)}`
}

/** A value, or in its place the words that say that it is missing, marked as such. */
export function renderValue(text: string): Html {
  const missing = text === NOT_RECORDED || text === NOT_KNOWN
  return missing ? html`<span class="unknown">${text}</span>` : html`${text}`
}

/** The facts that identify a patient, always in this order (design: Patient banner). */
export function listFacts(person: Person, now: number): readonly (readonly [label: string, value: Html])[] {
  const { label, value } = recordNumber(person)
  return [
    ...renderBirth(person, now),
    ['Sex', renderValue(formatSex(person.gender))],
    [label, html`${value}`],
  ]
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
