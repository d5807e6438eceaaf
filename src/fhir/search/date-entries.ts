import { type DateRange, earliest, latest, parseDateRange } from '../date-range.ts'
import { isRecord } from '../record.ts'
import type { DateEntry, ExtractedValue } from './entry.ts'

export function indexDate(found: ExtractedValue): readonly DateEntry[] {
  const range = toRange(found.type, found.value)
  return range === undefined
    ? []
    : [{ kind: 'date', parameter: found.parameter, low: range.low, high: range.high }]
}

function toRange(type: string, value: unknown): DateRange | undefined {
  switch (type) {
    case 'date':
    case 'dateTime':
    case 'instant':
      return parseDay(value)
    case 'Period':
      return readPeriod(value)
    case 'Timing':
      return readTiming(value)
    default:
      return undefined
  }
}

function parseDay(value: unknown): DateRange | undefined {
  return typeof value === 'string' ? parseDateRange(value) : undefined
}

function readPeriod(value: unknown): DateRange | undefined {
  if (!isRecord(value)) return undefined
  const start = parseDay(value.start)
  const end = parseDay(value.end)
  if (start === undefined && end === undefined) return undefined
  return { low: start?.low ?? earliest, high: end?.high ?? latest }
}

/** Of a schedule only the outer limits count (R4 search.html#date). */
function readTiming(value: unknown): DateRange | undefined {
  if (!isRecord(value)) return undefined
  const events = Array.isArray(value.event) ? value.event.map(parseDay).filter(it => it !== undefined) : []
  const bounds = isRecord(value.repeat) ? readPeriod(value.repeat.boundsPeriod) : undefined
  const ranges = bounds === undefined ? events : [...events, bounds]
  return ranges.reduce<DateRange | undefined>(
    (all, it) =>
      all === undefined ? it : { low: Math.min(all.low, it.low), high: Math.max(all.high, it.high) },
    undefined,
  )
}
