import { type Fault, makeFault } from '../base/fault.ts'
import { LIMITS } from '../base/limits.ts'
import { findBirthDate, findNameAndYear } from './birth-date.ts'
import { hasDigit, hasNumber, listSpellings } from './record-number.ts'

/** Why a search is too long. */
export function findSearchFault(search: string | undefined): Fault | undefined {
  if (search === undefined) return undefined
  const { searchCharacters, searchWords } = LIMITS
  return search.length > searchCharacters || splitWords(search).length > searchWords
    ? makeFault('search-too-long', { characters: searchCharacters, words: searchWords })
    : undefined
}

/** Leaves out the labels that come with a number or a birth date that was copied. */
export function dropLabels(search: string): string {
  return search.replace(/(?<![\p{L}\p{N}])(?:MRN|DOB)(?![\p{L}\p{N}])[:#.\s]*(?=\S)/giu, '').trim()
}

/** The FHIR searches of a text. A patient that one of them finds matches the text. */
export function buildPatientQueries(text: string): readonly string[] {
  const birth = findBirthDate(text)
  const words = splitWords(text)
  const births = [birth, findNameAndYear(text)].filter(it => it !== undefined)
  const byBirth = [...new Set(births.map(({ dates, rest }) => buildBirthQuery(dates, splitWords(rest))))]
  const [word = '', ...more] = words
  if (more.length === 0) {
    const byNumber = buildNumberQuery(listSpellings(word))
    // The digits of a date may be those of an MRN.
    return birth
      ? [...byBirth, byNumber, ...listNumberQueries(word, birth.isDay)]
      : [byNumber, buildNameQuery(words)]
  }
  if (birth) return byBirth
  const parts = words.filter(hasDigit)
  const names = words.filter(word => !hasDigit(word))
  return [
    // A name that is recorded as one text has no separate parts.
    buildNameQuery([text]),
    buildNameQuery(words),
    ...(hasNumber(text) ? [buildNumberQuery(listSpellings(text))] : []),
    ...(parts.length > 0 && names.length > 0
      ? [`${buildNameQuery(names)}&${buildNumberQuery(listSpellings(parts.join(' ')))}`]
      : []),
  ]
}

/** The searches of a text that is neither a name nor a whole number: by FHIR id, and by a part of a number. */
export function buildOtherQueries(text: string): readonly string[] {
  return findBirthDate(text) ? [] : listNumberQueries(text, false)
}

/** The search for names that contain the words. Few letters are part of too many names. */
export function buildPartQuery(text: string): string | undefined {
  const words = splitWords(text)
  if (hasDigit(text) || !words.some(({ length }) => length >= MIN_PART)) return undefined
  return words.map(word => `name:contains=${encodeName(word)}`).join('&')
}

const MIN_PART = 3

/** A birth date is not searched as an id, because the audit trail contains ids. */
function listNumberQueries(text: string, isDay: boolean): readonly string[] {
  return [
    ...(FHIR_ID.test(text) && !isDay ? [`_id=${text}`] : []),
    ...(hasNumber(text) ? [`identifier:contains=${listSpellings(text).map(encodeValue).join()}`] : []),
  ]
}

/** FHIR R4, 2.24.0.1. */
const FHIR_ID = /^[A-Za-z0-9.-]{1,64}$/

function buildBirthQuery(dates: readonly string[], names: readonly string[]): string {
  const query = `birthdate=${dates.join()}`
  return names.length === 0 ? query : `${query}&${buildNameQuery(names)}`
}

export function buildNumberQuery(spellings: readonly string[]): string {
  return `identifier=${spellings.map(encodeValue).join()}`
}

// A server compares each part of a name separately, so the words may be in any order.
export function buildNameQuery(words: readonly string[]): string {
  return words.map(word => `name=${encodeName(word)}`).join('&')
}

/** A name with either apostrophe: tablets type the curved one, and a server compares characters. */
export function encodeName(name: string): string {
  const spellings = [name, name.replace(APOSTROPHE, "'"), name.replace(APOSTROPHE, '’')]
  return [...new Set(spellings)].map(encodeValue).join(',')
}

const APOSTROPHE = /['’ʼ]/g

export function splitWords(search: string): readonly string[] {
  return search.split(/[\s,]+/).filter(word => word !== '')
}

// FHIR R4, 3.1.1.3.2: separators are escaped. A name from the FHIR server may contain a lone surrogate.
function encodeValue(text: string): string {
  return encodeURIComponent(text.toWellFormed().replace(/[\\,|$]/g, '\\$&'))
}
