import { isDate } from '../date-range.ts'
import { FRACTION_DIGITS, NARRATIVE_CHARACTERS } from '../limits.ts'
import { isNarrative } from './narrative.ts'

/** Undefined if the JSON value is valid for the primitive type, otherwise a description of valid values. */
export type PrimitiveCheck = (value: unknown) => string | undefined

const day = '\\d{4}(?:-\\d{2}(?:-\\d{2})?)?'
const clock = `(?:[01]\\d|2[0-3]):[0-5]\\d:(?:[0-5]\\d|60)(?:\\.\\d{1,${FRACTION_DIGITS}})?`
const zone = '(?:Z|[+-](?:(?:0\\d|1[0-3]):[0-5]\\d|14:00))'

const patterns = {
  id: /^[A-Za-z0-9\-.]{1,64}$/,
  code: /^\S+(?:\s\S+)*$/,
  uri: /^\S+$/,
  oid: /^urn:oid:[0-2](?:\.(?:0|[1-9]\d*))+$/,
  uuid: /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/,
  date: new RegExp(`^${day}$`),
  dateTime: new RegExp(`^(?:${day}|\\d{4}-\\d{2}-\\d{2}T${clock}${zone})$`),
  instant: new RegExp(`^\\d{4}-\\d{2}-\\d{2}T${clock}${zone}$`),
  time: new RegExp(`^${clock}$`),
}

/** R4 datatypes.html#primitive. The JSON type is checked too: a number in quotes is a fault. */
export const primitives: ReadonlyMap<string, PrimitiveCheck> = new Map(
  Object.entries({
    boolean: expect(value => typeof value === 'boolean', 'true or false'),
    integer: expect(value => isInteger(value, -2_147_483_648), 'a whole number of 32 bits'),
    unsignedInt: expect(value => isInteger(value, 0), 'a whole number, 0 or more'),
    positiveInt: expect(value => isInteger(value, 1), 'a whole number, 1 or more'),
    decimal: expect(value => Number.isFinite(value), 'a number'),
    string: expect(isText, 'a text that is not empty, without control characters'),
    markdown: expect(isText, 'a text that is not empty, without control characters'),
    code: expect(isTextLike(patterns.code), 'a code without needless white space'),
    id: expect(value => fits(patterns.id, value), 'an id: 1 to 64 of A-Z, a-z, 0-9, - and .'),
    uri: expect(isTextLike(patterns.uri), 'a URI without white space'),
    url: expect(isTextLike(patterns.uri), 'a URL without white space'),
    canonical: expect(isTextLike(patterns.uri), 'a canonical URL without white space'),
    oid: expect(value => fits(patterns.oid, value), 'an OID: urn:oid:…'),
    uuid: expect(value => fits(patterns.uuid, value), 'a UUID: urn:uuid:…'),
    date: expect(value => isDay(patterns.date, value), 'a date: YYYY, YYYY-MM or YYYY-MM-DD'),
    dateTime: expect(value => isDay(patterns.dateTime, value), 'a date, or a date and time with zone'),
    instant: expect(value => isDay(patterns.instant, value), 'a date and time to the second, with zone'),
    time: expect(value => fits(patterns.time, value), 'a time: hh:mm:ss'),
    base64Binary: expect(isBase64, 'base64'),
    xhtml: value =>
      typeof value === 'string' && value.length > NARRATIVE_CHARACTERS
        ? `a narrative of at most ${NARRATIVE_CHARACTERS} characters`
        : checkNarrative(value),
  } satisfies Record<string, PrimitiveCheck>),
)

const checkNarrative = expect(
  value => typeof value === 'string' && isNarrative(value),
  'well-formed XHTML: one div in the XHTML namespace with basic formatting',
)

function expect(isValid: (value: unknown) => boolean, description: string): PrimitiveCheck {
  return value => (isValid(value) ? undefined : description)
}

function isTextLike(pattern: RegExp): (value: unknown) => boolean {
  return value => isText(value) && fits(pattern, value)
}

function fits(pattern: RegExp, value: unknown): boolean {
  return typeof value === 'string' && pattern.test(value)
}

function isInteger(value: unknown, least: number): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= 2_147_483_647
}

/**
 * R4: no characters below 32 but tab, line feed and carriage return. Half of a surrogate pair is no character: SQLite
 * stores another in its place, by which a search would find it.
 */
function isText(value: unknown): boolean {
  if (typeof value !== 'string' || value === '') return false
  for (let at = 0; at < value.length; at++) {
    const code = value.charCodeAt(at)
    if (code < 32 && code !== 9 && code !== 10 && code !== 13) return false
  }
  return value.isWellFormed()
}

function isDay(pattern: RegExp, value: unknown): boolean {
  if (typeof value !== 'string' || !pattern.test(value)) return false
  const [year, month, date] = [value.slice(0, 4), value.slice(5, 7), value.slice(8, 10)].map(Number)
  // `2020-00` is no month; `2020` has none.
  return isDate(year ?? 0, value.length > 4 ? (month ?? 0) : 1, value.length > 7 ? (date ?? 0) : 1)
}

/** Characters of a long base64 text that are compared at once: a multiple of 4. */
const BASE64_PART = 64 * 1024

/** By hand: a regular expression over megabytes can exhaust its stack. */
function isBase64(value: unknown): boolean {
  if (typeof value !== 'string' || value === '') return false
  // Attachments have megabytes: parts without spaces are compared as a whole.
  let known = 0
  while (isPlainPart(value.slice(known, known + BASE64_PART))) known += BASE64_PART
  let digits = known
  let padding = 0
  for (let at = known; at < value.length; at++) {
    const code = value.charCodeAt(at)
    if (code === 61) padding++
    else if (isBase64Digit(code) && padding === 0) digits++
    else if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return false
  }
  return padding <= 2 && digits > 0 && (digits + padding) % 4 === 0
}

function isPlainPart(part: string): boolean {
  return (
    part.length === BASE64_PART &&
    !part.endsWith('=') &&
    Buffer.from(part, 'base64').toString('base64') === part
  )
}

function isBase64Digit(code: number): boolean {
  return (
    (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 47 && code <= 57) || code === 43
  )
}
