import { parseDateRange } from '../date-range.ts'
import { SEARCHED_CHARACTERS } from '../limits.ts'
import type { Prefix, QuantityValue, RangeComparison, TokenValue } from './clause.ts'

const prefixes: ReadonlySet<string> = new Set<Prefix>(['eq', 'ne', 'gt', 'ge', 'lt', 'le', 'sa', 'eb', 'ap'])
const decimal = /^[+-]?\d+(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/

function isPrefix(text: string): text is Prefix {
  return prefixes.has(text)
}

function stripPrefix(text: string): { readonly prefix: Prefix; readonly rest: string } {
  const prefix = text.slice(0, 2)
  return isPrefix(prefix) ? { prefix, rest: text.slice(2) } : { prefix: 'eq', rest: text }
}

/** `code`, `system|code`, `|code`, `system|`. */
export function parseToken(text: string): TokenValue | undefined {
  const parts = split(text, '|').map(unescapeValue)
  const [system, code] = parts
  if (system === undefined || parts.length > 2) return undefined
  if (code === undefined) return system === '' ? undefined : { system: undefined, code: system }
  if (system === '') return code === '' ? undefined : { system: null, code }
  return { system, code: code === '' ? undefined : code }
}

/** `ap` adds the width of the value on both sides: a year around a year, a day around a day (R4 leaves this open). */
export function parseDate(text: string): RangeComparison | undefined {
  const { prefix, rest } = stripPrefix(text)
  // A plus sign that was not percent-encoded is decoded as a space.
  const range = parseDateRange(rest.replace(/ (?=\d{2}:\d{2}$)/, '+'))
  if (range === undefined) return undefined
  const width = prefix === 'ap' ? range.high - range.low + 1 : 0
  return { prefix, low: range.low - width, high: range.high + width }
}

/** `eq` and `ne` use the given precision: 100 is 99.5 up to 100.5. The other prefixes use the exact number. */
export function parseNumber(text: string): RangeComparison | undefined {
  const { prefix, rest } = stripPrefix(text)
  const found = decimal.exec(rest)
  const value = Number(rest)
  if (found === null || !Number.isFinite(value)) return undefined
  if (prefix === 'ap')
    return { prefix, low: value - Math.abs(value) / 10, high: value + Math.abs(value) / 10 }
  if (prefix !== 'eq' && prefix !== 'ne') return { prefix, low: value, high: value }
  const half = 0.5 * 10 ** (Number(found[2] ?? 0) - (found[1]?.length ?? 0))
  return { prefix, low: value - half, high: Math.max(value, getNextBelow(value + half)) }
}

/** `5.4`, `5.4|http://unitsofmeasure.org|mg`, `5.4||mg`. */
export function parseQuantity(text: string): QuantityValue | undefined {
  const parts = split(text, '|').map(unescapeValue)
  if (parts.length > 3 || parts.length === 2) return undefined
  const [number, system, code] = parts
  const comparison = parseNumber(number ?? '')
  return comparison === undefined
    ? undefined
    : { ...comparison, system: system === '' ? undefined : system, code: code === '' ? undefined : code }
}

/** The largest number below this one, so that a range that ends before it has inclusive ends. */
function getNextBelow(value: number): number {
  if (value === 0) return -Number.MIN_VALUE
  const bits = new DataView(new ArrayBuffer(8))
  bits.setFloat64(0, value)
  bits.setBigInt64(0, bits.getBigInt64(0) + (value > 0 ? -1n : 1n))
  return bits.getFloat64(0)
}

/**
 * Splits a search value at a separator that is not escaped (R4 search.html#escaping). The parts keep their escapes, so
 * that they can be split by another separator; `unescapeValue` removes them.
 */
export function split(text: string, separator: ',' | '|' | '$'): readonly string[] {
  const parts: string[] = []
  let start = 0
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === separator) {
      parts.push(text.slice(start, at))
      start = at + 1
    }
  }
  parts.push(text.slice(start))
  return parts
}

/** The values of `:not` exclude each other's matches, and `:missing` takes one value. */
export function takesAlternatives(name: string): boolean {
  return !/:(?:not|missing)\b/.test(name)
}

/** The values any of which a resource may have: `category=a,b` (R4 search.html#combining). */
export function listAlternatives(name: string, value: string): readonly string[] {
  return takesAlternatives(name) ? split(value, ',') : [value]
}

/** `\,`, `\|`, `\$` and `\\` mean the second character; any other backslash means itself. */
export function unescapeValue(text: string): string {
  return text.replace(/\\([,|$\\])/g, '$1')
}

/** Escapes a text for a literal search: `Smith, John` becomes `Smith\, John`. */
export function escapeSearchValue(text: string): string {
  return text.replace(/[,|$\\]/g, '\\$&')
}

/** Letters that Unicode does not decompose into a base letter and an accent. */
const folded: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ı: 'i',
  ħ: 'h',
}

/**
 * Normalizes a text for string searches: without case and accents, commas and white space as one space, so that
 * `nunez ana` finds `Núñez, Ana` (R4 search.html#string leaves punctuation and spaces to the server).
 */
export function normalize(whole: string): string {
  const text = cutToSearched(whole)
  return (plain.test(text) ? text.toLowerCase() : stripAccents(text)).replace(/[\s,]+/g, ' ').trim()
}

/** The searched part of a text, without half of a surrogate pair at its end: SQLite stores only whole ones. */
function cutToSearched(text: string): string {
  return text.length > SEARCHED_CHARACTERS
    ? text.slice(0, SEARCHED_CHARACTERS).replace(/[\ud800-\udbff]$/, '')
    : text
}

/** In lower case as SQLite's `lower` writes it. */
export function lowerAscii(text: string): string {
  return text.replace(/[A-Z]+/g, letters => letters.toLowerCase())
}

/** Most texts; ten times as fast. */
const plain = /^[ -~]*$/

// Marks are also removed before: the time to put a run of them in order grows with the square of its length.
function stripAccents(text: string): string {
  return text
    .replace(/\p{M}+/gu, '')
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[ßæœøłđðþıħ]/g, letter => folded[letter] ?? letter)
    .replace(/\p{M}+/gu, '')
}
