import { LIMITS } from '../../base/limits.ts'

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
  const [word = '', ...more] = words
  if (more.length === 0)
    return [
      ...byBirth,
      buildNumberQuery(word),
      buildNameQuery(words),
      ...(FHIR_ID.test(word) ? [`_id=${word}`] : []),
    ]
  // A name that is recorded as one text has no separate parts.
  return birth ? byBirth : [buildNameQuery([search]), buildNameQuery(words)]
}

/** FHIR R4, 2.24.0.1. */
const FHIR_ID = /^[A-Za-z0-9.-]{1,64}$/

function buildBirthQuery(date: string, names: readonly string[]): string {
  return names.length === 0 ? `birthdate=${date}` : `birthdate=${date}&${buildNameQuery(names)}`
}

export function buildNumberQuery(number: string): string {
  return `identifier=${encodeValue(number)}`
}

// A server compares each part of a name separately, so the words may be in any order.
function buildNameQuery(words: readonly string[]): string {
  return words.map(word => `name=${encodeName(word)}`).join('&')
}

/** A name with either apostrophe: tablets type the curved one, and a server compares characters. */
export function encodeName(name: string): string {
  const spellings = [name, name.replace(APOSTROPHE, "'"), name.replace(APOSTROPHE, '’')]
  return [...new Set(spellings)].map(encodeValue).join(',')
}

const APOSTROPHE = /['’ʼ]/g

/** The search of a part of an MRN or another identifier. */
export function buildPartOfNumberQuery(part: string): string {
  return `identifier:contains=${encodeValue(part)}`
}

/** Completes digits to a number of the same form as an example: `4127` to `SYN-004127`. */
export function completeNumber(digits: string, example: string | undefined): string | undefined {
  const [, prefix, number = ''] = /^(.*?)(?<!\d)(\d+)$/.exec(example ?? '') ?? []
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

// FHIR R4, 3.1.1.3.2: separators are escaped. A name from the FHIR server may contain a lone surrogate.
function encodeValue(text: string): string {
  return encodeURIComponent(text.toWellFormed().replace(/[\\,|$]/g, '\\$&'))
}

const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ')

const MONTH = String.raw`(?<month>${MONTHS.join('|')})[a-z]*\.?`
const YEAR = String.raw`(?<year>(?:18|19|20)\d\d)`

/** The usual notations. A month in letters comes before or after its day. */
const NOTATIONS: readonly RegExp[] = [
  String.raw`${YEAR}-(?<month>\d\d?)-(?<day>\d\d?)`,
  String.raw`${YEAR}(?<month>\d\d)(?<day>\d\d)`,
  String.raw`(?<first>\d\d?)[./-](?<second>\d\d?)[./-]${YEAR}`,
  String.raw`(?<day>\d\d?)(?:st|nd|rd|th)?[\s.-]*${MONTH}[\s,-]*${YEAR}`,
  String.raw`${MONTH}\s*(?<day>\d\d?)(?:st|nd|rd|th)?[\s,]+${YEAR}`,
  String.raw`${MONTH}[\s,-]*${YEAR}`,
  String.raw`${YEAR}-(?<month>\d\d)`,
  YEAR,
].map(notation => new RegExp(String.raw`(?<![\p{L}\p{N}-])${notation}(?![\p{L}\p{N}-])`, 'iu'))

/** A birth date in a text, and the rest of the text. */
interface BirthDate {
  /** FHIR dates: two if day and month can be read in both orders. */
  readonly dates: readonly string[]
  readonly rest: string
}

/** Finds a birth date in one of the usual notations: `14-Mar-1958`, `14.3.1958`, `3/14/1958`, `1958-03-14`, `Mar 1958`. */
function findBirthDate(text: string): BirthDate | undefined {
  for (const notation of NOTATIONS) {
    const match = notation.exec(text)
    const dates = match?.groups ? readDates(match.groups) : []
    if (match && dates.length > 0) return { dates, rest: text.replace(match[0], ' ').trim() }
  }
  return undefined
}

function readDates({ year = '', month, day, first, second }: Record<string, string | undefined>) {
  const orders =
    first === undefined
      ? [[month, day]]
      : [
          [second, first],
          [first, second],
        ]
  return [...new Set(orders.flatMap(([month, day]) => formatDate(year, month, day) ?? []))]
}

function formatDate(year: string, month: string | undefined, day: string | undefined): string | undefined {
  if (month === undefined) return year
  const number = MONTHS.indexOf(month.slice(0, 3).toLowerCase()) + 1 || Number(month)
  const parts = [year, pad(number), ...(day === undefined ? [] : [pad(Number(day))])]
  const date = new Date(Date.UTC(Number(year), number - 1, Number(day ?? 1)))
  return date.toISOString().startsWith(parts.join('-')) ? parts.join('-') : undefined
}

function pad(value: number): string {
  return String(value).padStart(2, '0')
}
