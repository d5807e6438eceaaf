import { listSearchParameters } from '../definitions.ts'
import { type CompiledPath, pathsOf } from '../path/compile.ts'
import { evaluatePath } from '../path/evaluate.ts'
import type { Resource, SearchParameter } from '../r4.ts'
import { isRecord } from '../record.ts'
import { indexDate } from './date-entries.ts'
import type { ExtractedValue, IndexEntry, StringEntry } from './entry.ts'
import { normalise } from './normalise.ts'
import { indexNumber, indexQuantity } from './quantity-entries.ts'
import { indexReference } from './reference-entries.ts'
import { indexToken } from './token-entries.ts'

const addressParts = ['text', 'line', 'city', 'district', 'state', 'postalCode', 'country']
const nameParts = ['text', 'family', 'given', 'prefix', 'suffix']

function indexString(found: ExtractedValue): readonly StringEntry[] {
  const texts = [...new Set(textsOf(found))].filter(it => it !== '')
  return texts.map(exact => ({ kind: 'string', parameter: found.parameter, normal: normalise(exact), exact }))
}

function textsOf({ type, value }: ExtractedValue): readonly string[] {
  if (type === 'string' || type === 'markdown') return typeof value === 'string' ? [value] : []
  if (!isRecord(value)) return []
  if (type === 'Address') return addressParts.flatMap(it => textsAt(value, it))
  if (type === 'HumanName') return [...nameParts.flatMap(it => textsAt(value, it)), ...listWholeNames(value)]
  return []
}

/** People are looked up by what is said of them: `Ana Núñez`, `Núñez, Ana`. */
function listWholeNames(name: Readonly<Record<string, unknown>>): readonly string[] {
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

/** The normalised values of every search parameter of a resource. References under `baseUrl` are local. */
export function indexEntries(resource: Resource, baseUrl: string): readonly IndexEntry[] {
  return listSearchParameters(resource.resourceType).flatMap(it => entriesOf(resource, it, baseUrl))
}

/** The normalised values of one search parameter. */
export function entriesOf(
  resource: Resource,
  parameter: SearchParameter,
  baseUrl: string,
): readonly IndexEntry[] {
  const entries: IndexEntry[] = []
  for (const path of pathsOf(resource.resourceType, parameter))
    for (const value of evaluatePath(resource, path))
      for (const entry of indexValue(parameter, path, value, baseUrl)) entries.push(entry)
  return entries
}

/** Those of one value that a path of the parameter found. */
export function indexValue(
  parameter: SearchParameter,
  { type, binding }: CompiledPath,
  value: unknown,
  baseUrl: string,
): readonly IndexEntry[] {
  return read(parameter, { parameter: parameter.code, type, binding, value, baseUrl })
}

function read(parameter: SearchParameter, found: ExtractedValue): readonly IndexEntry[] {
  switch (parameter.type) {
    case 'token':
      return indexToken(found)
    case 'reference':
      return indexReference(found)
    case 'string':
      return indexString(found)
    case 'date':
      return indexDate(found)
    case 'number':
      return indexNumber(found)
    case 'quantity':
      return indexQuantity(found)
    case 'uri':
      return typeof found.value === 'string'
        ? [{ kind: 'uri', parameter: found.parameter, uri: found.value }]
        : []
    case 'composite':
    case 'special':
      return []
  }
}
