import { randomUUID } from 'node:crypto'
import type { Decimal, ExactResource, Resource } from './r4.ts'
import { isRecord } from './record.ts'

// Random, so that no text that was sent can pass for a number.
const MARK = `${randomUUID()} `
const MARKED = new RegExp(`"${MARK}([-+.\\deE]+)"`, 'g')

// JSON numbers (RFC 8259, 6) that may be longer than their double: with a fraction, an exponent, 16 digits, or `-0`.
const CANDIDATE =
  /(?<=[:,[\s])-?(?:(?:0|[1-9]\d*)(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)|[1-9]\d{15,}|(?<=-)0)(?=[\s,\]}])/g

/**
 * JSON whose decimals keep their digits: a number that a double would write differently is a marked text until
 * `exactText` writes it. Of a name that occurs twice the last one counts, as in JSON.parse: what is checked and what is
 * sent are the same.
 */
export function parseExact(text: string): unknown {
  return JSON.parse(markDecimals(text))
}

/** What `parseExact` would make of a text that is parsed already: the same value, where it keeps all digits. */
export function exactTwin(parsed: unknown, text: string): unknown {
  const marked = markDecimals(text)
  return marked === text ? parsed : JSON.parse(marked)
}

/** JSON text with the digits of its decimals. */
export function formatExact(value: unknown): string {
  const text = JSON.stringify(value)
  return text.includes(MARK) ? text.replace(MARKED, '$1') : text
}

/** The same value with numbers; what holds no marked decimal is shared with the original. */
export function toPlain(value: ExactResource): Resource
export function toPlain(value: unknown): unknown
export function toPlain(value: unknown): unknown {
  return plainBelow(value, MAX_DEPTH)
}

// Deeper than any valid resource (see `validate`), which is refused before its numbers count.
const MAX_DEPTH = 200

function plainBelow(value: unknown, levels: number): unknown {
  if (typeof value === 'string') return value.startsWith(MARK) ? Number(value.slice(MARK.length)) : value
  if (levels === 0) return value
  if (Array.isArray(value)) return plainItems(value, levels)
  return isRecord(value) ? plainMembers(value, levels) : value
}

// Mostly nothing is marked, and then nothing is copied.
function plainItems(items: readonly unknown[], levels: number): readonly unknown[] {
  let copy: unknown[] | undefined
  for (const [at, item] of items.entries()) {
    const plain = plainBelow(item, levels - 1)
    if (plain === item) continue
    copy ??= items.slice()
    copy[at] = plain
  }
  return copy ?? items
}

function plainMembers(members: Readonly<Record<string, unknown>>, levels: number): object {
  let changed: Map<string, unknown> | undefined
  for (const name of Object.keys(members)) {
    const plain = plainBelow(members[name], levels - 1)
    if (plain === members[name]) continue
    changed ??= new Map()
    changed.set(name, plain)
  }
  if (!changed) return members
  // Not by assignment, which would take a member called `__proto__` for the prototype.
  return Object.fromEntries([...Object.entries(members), ...changed])
}

/** The digits of a decimal as they were written. */
export function formatDigits(decimal: Decimal): string {
  return typeof decimal === 'number' ? String(decimal) : decimal.slice(MARK.length)
}

/** Whether two values of exact JSON are the same (RFC 6902, 4.6): decimals by their value, to the last digit. */
export function isSameJson(a: unknown, b: unknown): boolean {
  if (isDecimal(a) && isDecimal(b)) return normalDigits(formatDigits(a)) === normalDigits(formatDigits(b))
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, at) => isSameJson(item, b[at]))
  if (!isRecord(a) || !isRecord(b)) return a === b
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length &&
    names.every(name => Object.hasOwn(b, name) && isSameJson(a[name], b[name]))
  )
}

function isDecimal(value: unknown): value is Decimal {
  return typeof value === 'number' || (typeof value === 'string' && value.startsWith(MARK))
}

/** `-12.50e3` as `-125e2`: no fraction, and no zero at either end. */
function normalDigits(source: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  const shown = digits.replace(/0+$/, '')
  if (shown === '') return '0'
  return `${sign}${shown}e${Number(exponent) - fraction.length + digits.length - shown.length}`
}

/** Marks the decimals that would lose digits. Quotation marks are followed along, so that texts stay as they are. */
function markDecimals(text: string): string {
  const parts: string[] = []
  let taken = 0
  // Before here nothing is inside an open text.
  let clear = 0
  CANDIDATE.lastIndex = 0
  for (let found = CANDIDATE.exec(text); found; found = CANDIDATE.exec(text)) {
    clear = skipTexts(text, clear, found.index)
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

/** Where the first text ends that ends after `index`; or a place before `index` where no text is open. */
function skipTexts(text: string, from: number, index: number): number {
  let at = from
  while (at <= index) {
    const open = text.indexOf('"', at)
    if (open < 0 || open > index) return at
    at = endOfText(text, open)
  }
  return at
}

/** What follows the closing quotation mark. */
function endOfText(text: string, open: number): number {
  let close = open
  do close = text.indexOf('"', close + 1)
  while (close > 0 && isEscaped(text, close))
  return close < 0 ? text.length + 1 : close + 1
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0
  while (text[at - 1 - slashes] === '\\') slashes++
  return slashes % 2 === 1
}
