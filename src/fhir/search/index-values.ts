import { isRecord, readText } from '../../core/index.ts'
import { definitions } from '../definitions.ts'
import type { ExtractedValue, NumberEntry, QuantityEntry, Range, TokenEntry } from './clause.ts'
import { normalize } from './values.ts'

export function indexToken(found: ExtractedValue): readonly TokenEntry[] {
  const { value } = found
  return isRecord(value) ? indexElement(found, value) : indexPrimitive(found, value)
}

function indexPrimitive(found: ExtractedValue, value: unknown): readonly TokenEntry[] {
  switch (found.type) {
    case 'boolean':
      return typeof value === 'boolean' ? [createTokenEntry(found, undefined, String(value), undefined)] : []
    case 'code':
    case 'id':
    case 'string':
    case 'uri':
      return typeof value === 'string'
        ? [createTokenEntry(found, findSystem(found.binding, value), value, undefined)]
        : []
    default:
      return []
  }
}

function indexElement(
  found: ExtractedValue,
  value: Readonly<Record<string, unknown>>,
): readonly TokenEntry[] {
  switch (found.type) {
    case 'CodeableConcept':
      return indexConcept(found, value)
    case 'Coding':
      return createTokenEntries(found, value.system, value.code, value.display)
    case 'Identifier':
      return createTokenEntries(
        found,
        value.system,
        value.value,
        isRecord(value.type) ? value.type.text : undefined,
      )
    case 'ContactPoint':
      return createTokenEntries(found, value.system, value.value, undefined)
    default:
      return []
  }
}

function indexConcept(
  found: ExtractedValue,
  concept: Readonly<Record<string, unknown>>,
): readonly TokenEntry[] {
  const codings = Array.isArray(concept.coding) ? concept.coding.filter(isRecord) : []
  return [
    ...codings.flatMap(it => createTokenEntries(found, it.system, it.code, it.display)),
    ...createTokenEntries(found, undefined, undefined, concept.text),
  ]
}

function createTokenEntries(
  found: ExtractedValue,
  system: unknown,
  code: unknown,
  text: unknown,
): readonly TokenEntry[] {
  const space = readText(system)
  const word = readText(code)
  const words = readText(text)
  if (space === undefined && word === undefined && words === undefined) return []
  return [createTokenEntry(found, space, word, words === undefined ? undefined : normalize(words))]
}

function createTokenEntry(
  found: ExtractedValue,
  system: string | undefined,
  code: string | undefined,
  text: string | undefined,
): TokenEntry {
  return { kind: 'token', parameter: found.parameter, system, code, text }
}

/** A bare code has the system of its required value set: `gender=http://…/administrative-gender|male`. */
function findSystem(binding: string | undefined, code: string): string | undefined {
  if (binding === undefined) return undefined
  return definitions.codes[binding]?.find(group => group.indexOf(code, 1) > 0)?.[0]
}

const currencies = 'urn:iso:std:iso:4217'

export function indexNumber(found: ExtractedValue): readonly NumberEntry[] {
  const { parameter, value } = found
  if (typeof value === 'number') return [{ kind: 'number', parameter, low: value, high: value }]
  if (found.type !== 'Range' || !isRecord(value)) return []
  const range = toNumberRange(value.low, value.high)
  return range === undefined ? [] : [{ kind: 'number', parameter, ...range }]
}

export function indexQuantity(found: ExtractedValue): readonly QuantityEntry[] {
  const { value } = found
  if (!isRecord(value)) return []
  switch (found.type) {
    case 'Quantity':
    case 'Age':
    case 'Duration':
      return createQuantityEntries(found, toNumberRange(value, value), value)
    case 'Range':
      return createQuantityEntries(found, toNumberRange(value.low, value.high), value.low ?? value.high)
    case 'Money':
      return createQuantityEntries(found, toNumberRange(value, value), {
        system: currencies,
        code: value.currency,
      })
    case 'SampledData':
      return createQuantityEntries(found, computeSampledRange(value), value.origin)
    default:
      return []
  }
}

function toNumberRange(low: unknown, high: unknown): Range | undefined {
  const least = readAmount(low)
  const most = readAmount(high)
  if (least === undefined && most === undefined) return undefined
  return { low: least ?? -Number.MAX_VALUE, high: most ?? Number.MAX_VALUE }
}

function computeSampledRange(value: Readonly<Record<string, unknown>>): Range | undefined {
  const { lowerLimit, upperLimit } = value
  return typeof lowerLimit === 'number' && typeof upperLimit === 'number'
    ? { low: lowerLimit, high: upperLimit }
    : undefined
}

function readAmount(quantity: unknown): number | undefined {
  return isRecord(quantity) && typeof quantity.value === 'number' ? quantity.value : undefined
}

function createQuantityEntries(
  found: ExtractedValue,
  range: Range | undefined,
  unit: unknown,
): readonly QuantityEntry[] {
  if (range === undefined || !isRecord(unit)) return []
  const { system, code, unit: name } = unit
  const named = { system: readText(system), code: readText(code), unit: readText(name) }
  return [{ kind: 'quantity', parameter: found.parameter, ...range, ...named }]
}
