import { parseDateRange } from '../date-range.ts'
import type { Comparison, Prefix, QuantityValue, TokenValue } from './clause.ts'
import { split, unescaped } from './split.ts'

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
  const parts = split(text, '|').map(unescaped)
  const [system, code] = parts
  if (system === undefined || parts.length > 2) return undefined
  if (code === undefined) return system === '' ? undefined : { system: undefined, code: system }
  if (system === '') return code === '' ? undefined : { system: null, code }
  return { system, code: code === '' ? undefined : code }
}

/** `ap` reaches as far again on both sides: a year around a year, a day around a day (R4 leaves the measure open). */
export function parseDate(text: string): Comparison | undefined {
  const { prefix, rest } = stripPrefix(text)
  // A plus sign that was not percent-encoded in the address has become a space.
  const range = parseDateRange(rest.replace(/ (?=\d{2}:\d{2}$)/, '+'))
  if (range === undefined) return undefined
  const width = prefix === 'ap' ? range.high - range.low + 1 : 0
  return { prefix, low: range.low - width, high: range.high + width }
}

/** `eq` and `ne` go by the digits given: 100 is 99.5 up to 100.5. The other prefixes take the number as exact. */
export function parseNumber(text: string): Comparison | undefined {
  const { prefix, rest } = stripPrefix(text)
  const found = decimal.exec(rest)
  const value = Number(rest)
  if (found === null || !Number.isFinite(value)) return undefined
  if (prefix === 'ap')
    return { prefix, low: value - Math.abs(value) / 10, high: value + Math.abs(value) / 10 }
  if (prefix !== 'eq' && prefix !== 'ne') return { prefix, low: value, high: value }
  const half = 0.5 * 10 ** (Number(found[2] ?? 0) - (found[1]?.length ?? 0))
  return { prefix, low: value - half, high: Math.max(value, justBelow(value + half)) }
}

/** `5.4`, `5.4|http://unitsofmeasure.org|mg`, `5.4||mg`. */
export function parseQuantity(text: string): QuantityValue | undefined {
  const parts = split(text, '|').map(unescaped)
  if (parts.length > 3 || parts.length === 2) return undefined
  const [number, system, code] = parts
  const comparison = parseNumber(number ?? '')
  return comparison === undefined
    ? undefined
    : { ...comparison, system: system === '' ? undefined : system, code: code === '' ? undefined : code }
}

/** The largest number under this one, so that a stretch that ends before it can be given with both ends inclusive. */
function justBelow(value: number): number {
  if (value === 0) return -Number.MIN_VALUE
  const bits = new DataView(new ArrayBuffer(8))
  bits.setFloat64(0, value)
  bits.setBigInt64(0, bits.getBigInt64(0) + (value > 0 ? -1n : 1n))
  return bits.getFloat64(0)
}
