import { LIMITS } from '../limits.ts'
import { findBirthDate } from './birth-dates.ts'

/** Returns the reason why a search is too long. */
export function findSearchFault(search: string | undefined): string | undefined {
  if (search === undefined) return undefined
  const { searchCharacters, searchWords } = LIMITS
  return search.length > searchCharacters || splitWords(search).length > searchWords
    ? `A search for patients has at most ${searchCharacters} characters and ${searchWords} words.`
    : undefined
}

/** The FHIR searches of a text. A patient that one of them finds matches the text. */
export function buildPatientQueries(search: string): readonly string[] {
  const birth = findBirthDate(search)
  const words = splitWords(search)
  const byBirth = birth ? birth.dates.map(date => buildBirthQuery(date, splitWords(birth.rest))) : []
  if (words.length === 1)
    return [...byBirth, ...(isNumber(search) ? [buildNumberQuery(search)] : []), buildNameQuery(words)]
  // A name that is recorded as one text has no separate parts.
  return birth ? byBirth : [buildNameQuery([search]), buildNameQuery(words)]
}

function buildBirthQuery(date: string, names: readonly string[]): string {
  return names.length === 0 ? `birthdate=${date}` : `birthdate=${date}&${buildNameQuery(names)}`
}

export function buildNumberQuery(number: string): string {
  return `identifier=${encodeValue(number)}`
}

// A server compares each part of a name separately, so the words may be in any order.
function buildNameQuery(words: readonly string[]): string {
  return words.map(word => `name=${encodeValue(word)}`).join('&')
}

/** The search of a part of an MRN or another identifier. */
export function buildPartOfNumberQuery(part: string): string {
  return `identifier:contains=${encodeValue(part)}`
}

/** Completes digits to a number of the same form as an example: `4127` to `SYN-004127`. */
export function completeNumber(digits: string, example: string | undefined): string | undefined {
  const [, prefix, number = ''] = /^(.*?)(\d+)$/.exec(example ?? '') ?? []
  if (prefix === undefined || !/^\d+$/.test(digits) || digits.length > number.length) return undefined
  return prefix + digits.padStart(number.length, '0')
}

/** Whether a text may be an MRN or a part of one: a word with a digit. */
export function isNumber(search: string): boolean {
  return /\d/.test(search) && splitWords(search).length === 1
}

function splitWords(search: string): readonly string[] {
  return search.split(/[\s,]+/).filter(word => word !== '')
}

// FHIR R4, 3.1.1.3.2: separators are escaped.
function encodeValue(text: string): string {
  return encodeURIComponent(text.replace(/[\\,|$]/g, '\\$&'))
}
