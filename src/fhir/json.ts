import { randomUUID } from 'node:crypto'
import { isRecord, parseJson } from '../core/index.ts'
import { JSON_DEPTH, JSON_VALUES } from './limits.ts'
import type { Decimal, ExactResource, Resource } from './resource.ts'

// Random, so that no string that a client sends can be mistaken for a number.
const MARK = `${randomUUID()} `
const MARKED = new RegExp(`"${MARK}([-+.\\deE]+)"`, 'g')

// JSON numbers (RFC 8259, 6) that may be longer than their double: with a fraction, an exponent, 16 digits, or `-0`.
const CANDIDATE =
  /(?<=[:,[\s])-?(?:(?:0|[1-9]\d*)(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)|[1-9]\d{15,}|(?<=-)0)(?=[\s,\]}])/g

/**
 * Parses JSON so that decimals keep their digits: a number that a double would write differently becomes a marked
 * string until `formatExact` writes it. Of a repeated name the last member counts, as in JSON.parse.
 */
export function parseExact(text: string): unknown {
  return JSON.parse(markDecimals(text))
}

/** Formats exact JSON with the original digits of its decimals; with an indent, in lines. */
export function formatExact(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, undefined, indent)
  return text.includes(MARK) ? text.replace(MARKED, '$1') : text
}

/** The value with numbers instead of marked strings. Parts without marked strings are shared, not copied. */
export function toPlain(value: ExactResource): Resource
export function toPlain(value: unknown): unknown
export function toPlain(value: unknown): unknown {
  return toPlainBelow(value, MAX_DEPTH)
}

const MAX_DEPTH = 200

function toPlainBelow(value: unknown, levels: number): unknown {
  if (typeof value === 'string') return value.startsWith(MARK) ? Number(value.slice(MARK.length)) : value
  if (levels === 0) return value
  if (Array.isArray(value)) return toPlainItems(value, levels)
  return isRecord(value) ? toPlainMembers(value, levels) : value
}

// Most resources have no marked string; then nothing is copied.
function toPlainItems(items: readonly unknown[], levels: number): readonly unknown[] {
  let copy: unknown[] | undefined
  for (const [at, item] of items.entries()) {
    const plain = toPlainBelow(item, levels - 1)
    if (plain === item) continue
    copy ??= items.slice()
    copy[at] = plain
  }
  return copy ?? items
}

function toPlainMembers(members: Readonly<Record<string, unknown>>, levels: number): object {
  let changed: Map<string, unknown> | undefined
  for (const name of Object.keys(members)) {
    const plain = toPlainBelow(members[name], levels - 1)
    if (plain === members[name]) continue
    changed ??= new Map()
    changed.set(name, plain)
  }
  if (!changed) return members
  // An assignment would set the prototype for a member called `__proto__`.
  return Object.fromEntries([...Object.entries(members), ...changed])
}

/** The digits of a decimal as received. */
export function formatDigits(decimal: Decimal): string {
  return typeof decimal === 'number' ? String(decimal) : decimal.slice(MARK.length)
}

/**
 * Whether two values of exact JSON are equal (RFC 6902, 4.6). Decimals are compared by value, to the last digit, as long as
 * the digits may be spent.
 */
export function isSameJson(a: unknown, b: unknown, spend: (digits: number) => boolean): boolean {
  if (isDecimal(a) && isDecimal(b)) {
    const first = formatDigits(a)
    const second = formatDigits(b)
    return spend(first.length + second.length) && normalizeDigits(first) === normalizeDigits(second)
  }
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, at) => isSameJson(item, b[at], spend))
  if (!isRecord(a) || !isRecord(b)) return a === b
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length &&
    names.every(name => Object.hasOwn(b, name) && isSameJson(a[name], b[name], spend))
  )
}

function isDecimal(value: unknown): value is Decimal {
  return typeof value === 'number' || (typeof value === 'string' && value.startsWith(MARK))
}

/** `-12.50e3` as `-125e2`: no fraction, and no zero at either end. */
function normalizeDigits(source: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  // Without the lookbehind, zeros that another digit follows would be compared again from each of them.
  const shown = digits.replace(/(?<!0)0+$/, '')
  if (shown === '') return '0'
  return `${sign}${shown}e${Number(exponent) - fraction.length + digits.length - shown.length}`
}

/** Marks the decimals that would lose digits, except inside strings. */
function markDecimals(text: string): string {
  const parts: string[] = []
  let taken = 0
  // The first quotation mark after the strings that were skipped.
  let open = findQuote(text, 0)
  CANDIDATE.lastIndex = 0
  for (let found = CANDIDATE.exec(text); found; found = CANDIDATE.exec(text)) {
    let clear = 0
    while (open < found.index) {
      clear = findStringEnd(text, open) + 1
      open = findQuote(text, clear)
    }
    if (clear > found.index) {
      CANDIDATE.lastIndex = clear
      continue
    }
    const [source] = found
    if (String(Number(source)) === source) continue
    parts.push(text.slice(taken, found.index), `"${MARK}${source}"`)
    taken = found.index + source.length
  }
  return parts.length === 0 ? text : parts.join('') + text.slice(taken)
}

/** The index of the next quotation mark, or the length of the text. */
function findQuote(text: string, from: number): number {
  const found = text.indexOf('"', from)
  return found < 0 ? text.length : found
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const SPACE = 0x20

const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d

/**
 * Why a JSON text is too costly to parse and process; undefined if it is not. One pass without recursion before the
 * text is parsed: values nested 100,000 levels deep overflow the stack of any code that walks them.
 */
export function findJsonExcess(text: string, mostValues = JSON_VALUES): string | undefined {
  return scanJson(text, mostValues, 0, [])
}

/** Undefined if the text is not JSON, or too costly. */
export function parseLimited(text: string): unknown {
  return findJsonExcess(text) ? undefined : parseJson(text)
}

/** Finds an excess, and adds the start and the end of each object and array at a level to `spans`. The outermost level is 1. */
function scanJson(text: string, mostValues: number, level: number, spans: number[]): string | undefined {
  let depth = 0
  let values = 1
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = findStringEnd(text, at)
        break
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        depth++
        values++
        if (depth > JSON_DEPTH) return `its JSON is nested more than ${JSON_DEPTH} levels deep`
        if (depth === level) spans.push(at)
        break
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        if (depth === level) spans.push(at + 1)
        depth--
        break
      case COMMA:
        values++
        break
    }
    if (values > mostValues) return `its JSON has more than ${mostValues} values`
  }
  return undefined
}

/** A Bundle in which the index of its text replaces each `entry.resource`. */
export interface SplitBundle {
  readonly bundle: unknown
  /** JSON of the resources, which is not parsed yet. */
  readonly texts: readonly string[]
}

// Of `resource` in `{"entry":[{"resource":{`.
const RESOURCE_LEVEL = 4

/**
 * Splits a Bundle, so that its resources can be sent as they were received, with all digits of their decimals. Returns why it
 * is too costly, like `findJsonExcess`, and throws if the JSON around the resources is invalid.
 */
export function splitBundle(text: string, mostValues = JSON_VALUES): SplitBundle | string {
  const spans: number[] = []
  const excess = scanJson(text, mostValues, RESOURCE_LEVEL, spans)
  if (excess !== undefined) return excess
  const others: string[] = []
  const texts: string[] = []
  let taken = 0
  for (let at = 0; at < spans.length; at += 2) {
    const start = spans[at] ?? 0
    const end = spans[at + 1] ?? text.length
    if (!isNamedResource(text, start)) continue
    others.push(text.slice(taken, start), String(texts.length))
    texts.push(text.slice(start, end))
    taken = end
  }
  return { bundle: JSON.parse(others.join('') + text.slice(taken)), texts }
}

// Of an entry in `{"entry":[{`.
const ENTRY_LEVEL = 3

/**
 * A Bundle of the complete entries at the beginning of a longer one; undefined if the beginning is too costly, or no element of
 * an array is complete.
 */
export function closeBundle(beginning: string, mostValues = JSON_VALUES): string | undefined {
  const spans: number[] = []
  if (scanJson(beginning, mostValues, ENTRY_LEVEL, spans) !== undefined) return undefined
  const end = spans.length % 2 === 0 ? spans.at(-1) : spans.at(-2)
  return end === undefined ? undefined : `${beginning.slice(0, end)}]}`
}

/** Whether the value at an index is that of a member called `resource`. */
function isNamedResource(text: string, at: number): boolean {
  const colon = skipSpaceBefore(text, at) - 1
  return text[colon] === ':' && text.endsWith('"resource"', skipSpaceBefore(text, colon))
}

function skipSpaceBefore(text: string, end: number): number {
  let at = end
  while (at > 0 && text.charCodeAt(at - 1) <= SPACE) at--
  return at
}

/** The index of the quotation mark that ends the string, or the length of the text. */
function findStringEnd(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length
}
