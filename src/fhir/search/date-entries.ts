import { type DateRange, earliest, latest, parseDateRange } from '../date-range.ts'
import { isRecord } from '../record.ts'
import type { DateEntry, ExtractedValue } from './entry.ts'

export function dateEntries(found: ExtractedValue): readonly DateEntry[] {
  const range = rangeOf(found.type, found.value)
  return range === undefined
    ? []
    : [{ kind: 'date', parameter: found.parameter, low: range.low, high: range.high }]
}

function rangeOf(type: string, value: unknown): DateRange | undefined {
  switch (type) {
    case 'date':
    case 'dateTime':
    case 'instant':
      return dateOf(value)
    case 'Period':
      return periodOf(value)
    case 'Timing':
      return timingOf(value)
    default:
      return undefined
  }
}

function dateOf(value: unknown): DateRange | undefined {
  return typeof value === 'string' ? parseDateRange(value) : undefined
}

function periodOf(value: unknown): DateRange | undefined {
  if (!isRecord(value)) return undefined
  const start = dateOf(value.start)
  const end = dateOf(value.end)
  if (start === undefined && end === undefined) return undefined
  return { low: start?.low ?? earliest, high: end?.high ?? latest }
}

/** Of a schedule only the outer limits count (R4 search.html#date). */
function timingOf(value: unknown): DateRange | undefined {
  if (!isRecord(value)) return undefined
  const events = Array.isArray(value.event) ? value.event.map(dateOf).filter(it => it !== undefined) : []
  const bounds = isRecord(value.repeat) ? periodOf(value.repeat.boundsPeriod) : undefined
  const ranges = bounds === undefined ? events : [...events, bounds]
  return ranges.reduce<DateRange | undefined>(
    (all, it) =>
      all === undefined ? it : { low: Math.min(all.low, it.low), high: Math.max(all.high, it.high) },
    undefined,
  )
}
