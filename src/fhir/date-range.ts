import { HOUR_MS, MINUTE_MS } from '../core/index.ts'
import { FRACTION_DIGITS } from './limits.ts'

/** The milliseconds that a date or time covers, both ends inclusive. */
export interface DateRange {
  readonly low: number
  readonly high: number
}

/** The bounds of an open Period. */
export const earliest = -8_640_000_000_000_000
export const latest = 8_640_000_000_000_000

const clock = `(\\d{2}):(\\d{2})(?::(\\d{2})(?:\\.(\\d{1,${FRACTION_DIGITS}}))?)?(Z|[+-]\\d{2}:\\d{2})?`
const pattern = new RegExp(`^(\\d{4})(?:-(\\d{2})(?:-(\\d{2})(?:T${clock})?)?)?$`)

/**
 * Parses `2020`, `2020-05`, `2020-05-04`, and times to the minute, the second or a fraction of it; UTC without a zone.
 * Undefined if the text is not a date, the 30th of February included.
 */
export function parseDateRange(text: string): DateRange | undefined {
  const found = pattern.exec(text)
  if (found === null) return undefined
  const [, year, month, day, hour, minute, second, fraction, zone] = found
  if (!isDate(Number(year), Number(month ?? 1), Number(day ?? 1))) return undefined
  if (hour === undefined) return toWholeDays(Number(year), toNumber(month), toNumber(day))
  const offset = parseOffset(zone)
  if (offset === undefined || Number(hour) > 23 || Number(minute) > 59 || Number(second ?? 0) > 60)
    return undefined
  const start =
    toMilliseconds(Number(year), Number(month), Number(day)) +
    Number(hour) * HOUR_MS +
    Number(minute) * MINUTE_MS
  return toRangeInMinute(start - offset, second, fraction)
}

/** The days of a month in the proleptic Gregorian calendar, from the year 1 on. */
export function isDate(year: number, month: number, day: number): boolean {
  if (year < 1 || month < 1 || month > 12 || day < 1) return false
  return day <= 28 || day <= new Date(toMilliseconds(year, month + 1, 0)).getUTCDate()
}

function toWholeDays(year: number, month: number | undefined, day: number | undefined): DateRange {
  if (month === undefined)
    return { low: toMilliseconds(year, 1, 1), high: toMilliseconds(year + 1, 1, 1) - 1 }
  if (day === undefined)
    return { low: toMilliseconds(year, month, 1), high: toMilliseconds(year, month + 1, 1) - 1 }
  return { low: toMilliseconds(year, month, day), high: toMilliseconds(year, month, day + 1) - 1 }
}

function toRangeInMinute(start: number, second: string | undefined, fraction: string | undefined): DateRange {
  if (second === undefined) return { low: start, high: start + 59_999 }
  const low = start + Number(second) * 1000
  if (fraction === undefined) return { low, high: low + 999 }
  const part = low + Math.floor(Number(`0.${fraction}`) * 1000 + 1e-6)
  return { low: part, high: part + Math.max(1, 10 ** (3 - fraction.length)) - 1 }
}

function parseOffset(zone: string | undefined): number | undefined {
  if (zone === undefined || zone === 'Z') return 0
  const hours = Number(zone.slice(1, 3))
  const minutes = Number(zone.slice(4))
  if (hours > 14 || minutes > 59) return undefined
  return (zone.startsWith('-') ? -1 : 1) * (hours * HOUR_MS + minutes * MINUTE_MS)
}

/** `Date.UTC` would read the years 0 to 99 as 1900 to 1999. */
function toMilliseconds(year: number, month: number, day: number): number {
  return new Date(0).setUTCFullYear(year, month - 1, day)
}

function toNumber(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text)
}
