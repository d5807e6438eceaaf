import { isRecord } from '../record.ts'
import type { ExtractedValue, StringEntry } from './entry.ts'
import { normalise } from './normalise.ts'

const addressParts = ['text', 'line', 'city', 'district', 'state', 'postalCode', 'country']
const nameParts = ['text', 'family', 'given', 'prefix', 'suffix']

export function stringEntries(found: ExtractedValue): readonly StringEntry[] {
  const texts = [...new Set(textsOf(found))].filter(it => it !== '')
  return texts.map(exact => ({ kind: 'string', parameter: found.parameter, normal: normalise(exact), exact }))
}

function textsOf({ type, value }: ExtractedValue): readonly string[] {
  if (type === 'string' || type === 'markdown') return typeof value === 'string' ? [value] : []
  if (!isRecord(value)) return []
  if (type === 'Address') return addressParts.flatMap(it => textsAt(value, it))
  if (type === 'HumanName') return [...nameParts.flatMap(it => textsAt(value, it)), ...wholeNames(value)]
  return []
}

/** People are looked up by what is said of them: `Ana Núñez`, `Núñez, Ana`. */
function wholeNames(name: Readonly<Record<string, unknown>>): readonly string[] {
  const family = textsAt(name, 'family')
  const given = textsAt(name, 'given')
  if (family.length === 0 || given.length === 0) return []
  return [[...given, ...family].join(' '), [...family, ...given].join(' ')]
}

function textsAt(record: Readonly<Record<string, unknown>>, key: string): readonly string[] {
  const value = record[key]
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  return values.filter(it => typeof it === 'string')
}
