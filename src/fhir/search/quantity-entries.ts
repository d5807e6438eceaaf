import { isRecord } from '../resource.ts'
import type { ExtractedValue, NumberEntry, QuantityEntry } from './entry.ts'

const currencies = 'urn:iso:std:iso:4217'

export function indexNumber(found: ExtractedValue): readonly NumberEntry[] {
  const { parameter, value } = found
  if (typeof value === 'number') return [{ kind: 'number', parameter, low: value, high: value }]
  if (found.type !== 'Range' || !isRecord(value)) return []
  const range = toRange(value.low, value.high)
  return range === undefined ? [] : [{ kind: 'number', parameter, low: range.low, high: range.high }]
}

export function indexQuantity(found: ExtractedValue): readonly QuantityEntry[] {
  const { value } = found
  if (!isRecord(value)) return []
  switch (found.type) {
    case 'Quantity':
    case 'Age':
    case 'Duration':
      return createEntries(found, toRange(value, value), value)
    case 'Range':
      return createEntries(found, toRange(value.low, value.high), value.low ?? value.high)
    case 'Money':
      return createEntries(found, toRange(value, value), { system: currencies, code: value.currency })
    case 'SampledData':
      return createEntries(found, computeSampledRange(value), value.origin)
    default:
      return []
  }
}

interface Numbers {
  readonly low: number
  readonly high: number
}

function toRange(low: unknown, high: unknown): Numbers | undefined {
  const [least, most] = [readAmount(low), readAmount(high)]
  if (least === undefined && most === undefined) return undefined
  return { low: least ?? -Number.MAX_VALUE, high: most ?? Number.MAX_VALUE }
}

function computeSampledRange(value: Readonly<Record<string, unknown>>): Numbers | undefined {
  const { lowerLimit, upperLimit } = value
  return typeof lowerLimit === 'number' && typeof upperLimit === 'number'
    ? { low: lowerLimit, high: upperLimit }
    : undefined
}

function readAmount(quantity: unknown): number | undefined {
  return isRecord(quantity) && typeof quantity.value === 'number' ? quantity.value : undefined
}

function createEntries(
  found: ExtractedValue,
  range: Numbers | undefined,
  unit: unknown,
): readonly QuantityEntry[] {
  if (range === undefined || !isRecord(unit)) return []
  return [
    {
      kind: 'quantity',
      parameter: found.parameter,
      low: range.low,
      high: range.high,
      system: toText(unit.system),
      code: toText(unit.code),
      unit: toText(unit.unit),
    },
  ]
}

function toText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
