import { isRecord } from '../../core/index.ts'
import { type DateRange, earliest, latest, parseDateRange } from '../date-range.ts'
import { listSearchParameters } from '../definitions.ts'
import { parseReference } from '../reference.ts'
import type { Resource, SearchParameter } from '../resource.ts'
import type { DateEntry, ExtractedValue, IndexEntry, ReferenceEntry, StringEntry } from './clause.ts'
import { indexNumber, indexQuantity, indexToken } from './index-values.ts'
import { type CompiledPath, evaluatePath, findPaths } from './path.ts'
import { normalize } from './values.ts'

const addressParts = ['text', 'line', 'city', 'district', 'state', 'postalCode', 'country']
const nameParts = ['text', 'family', 'given', 'prefix', 'suffix']

function indexString(found: ExtractedValue): readonly StringEntry[] {
  const texts = [...new Set(listTexts(found))].filter(it => it !== '')
  return texts.map(exact => ({ kind: 'string', parameter: found.parameter, normal: normalize(exact), exact }))
}

function listTexts({ type, value }: ExtractedValue): readonly string[] {
  if (type === 'string' || type === 'markdown') return typeof value === 'string' ? [value] : []
  if (!isRecord(value)) return []
  if (type === 'Address') return addressParts.flatMap(it => listTextsAt(value, it))
  if (type === 'HumanName')
    return [...nameParts.flatMap(it => listTextsAt(value, it)), ...listWholeNames(value)]
  return []
}

/** Users search for full names: `Ana Núñez`, `Núñez, Ana`. */
function listWholeNames(name: Readonly<Record<string, unknown>>): readonly string[] {
  const family = listTextsAt(name, 'family')
  const given = listTextsAt(name, 'given')
  if (family.length === 0 || given.length === 0) return []
  return [[...given, ...family].join(' '), [...family, ...given].join(' ')]
}

function listTextsAt(record: Readonly<Record<string, unknown>>, key: string): readonly string[] {
  const value = record[key]
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  return values.filter(it => typeof it === 'string')
}

/** The normalized values of every search parameter of a resource. References under `baseUrl` are local. */
export function indexResource(resource: Resource, baseUrl: string): readonly IndexEntry[] {
  return listSearchParameters(resource.resourceType).flatMap(it => indexParameter(resource, it, baseUrl))
}

/** The normalized values of one search parameter. */
export function indexParameter(
  resource: Resource,
  parameter: SearchParameter,
  baseUrl: string,
): readonly IndexEntry[] {
  const entries: IndexEntry[] = []
  for (const path of findPaths(resource.resourceType, parameter))
    for (const value of evaluatePath(resource, path))
      for (const entry of indexValue(parameter, path, value, baseUrl)) entries.push(entry)
  return entries
}

/** The entries of one value that a path of the parameter selects. */
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

function indexDate(found: ExtractedValue): readonly DateEntry[] {
  const range = toDateRange(found.type, found.value)
  return range === undefined ? [] : [{ kind: 'date', parameter: found.parameter, ...range }]
}

function toDateRange(type: string, value: unknown): DateRange | undefined {
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
  const low = start?.low ?? earliest
  const high = end?.high ?? latest
  // Times in different zones can be in reverse without violating per-1.
  return { low: Math.min(low, high), high: Math.max(low, high) }
}

/** Only the outer limits of a schedule count (R4 search.html#date). */
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

/** A reference to a contained resource has no entry. */
function indexReference(found: ExtractedValue): readonly ReferenceEntry[] {
  const { value } = found
  if (found.type === 'canonical' || found.type === 'uri') {
    return typeof value === 'string' ? indexUrl(found, value) : []
  }
  if (!isRecord(value)) return []
  if (found.type === 'Resource') return indexContained(found, value)
  if (found.type !== 'Reference') return []
  const urls = typeof value.reference === 'string' ? indexUrl(found, value.reference) : []
  return value.identifier === undefined ? urls : [...urls, ...indexIdentifier(found, value.identifier)]
}

function indexUrl(found: ExtractedValue, reference: string): readonly ReferenceEntry[] {
  if (reference.startsWith('#') || reference === '') return []
  const local = parseReference(reference, found.baseUrl)
  if (local !== undefined) return [createEntry(found, { type: local.type, id: local.id })]
  const [canonical, version] = reference.split('|')
  const whole = createEntry(found, { url: reference })
  return version === undefined ? [whole] : [whole, createEntry(found, { url: canonical })]
}

/** `Bundle.entry[0].resource`: a resource in the position of a reference. */
function indexContained(
  found: ExtractedValue,
  resource: Readonly<Record<string, unknown>>,
): readonly ReferenceEntry[] {
  const { resourceType, id } = resource
  return typeof resourceType === 'string' && typeof id === 'string'
    ? [createEntry(found, { type: resourceType, id })]
    : []
}

function indexIdentifier(found: ExtractedValue, identifier: unknown): readonly ReferenceEntry[] {
  if (!isRecord(identifier) || typeof identifier.value !== 'string') return []
  const system = typeof identifier.system === 'string' ? identifier.system : undefined
  return [createEntry(found, { identifierSystem: system, identifierValue: identifier.value })]
}

type Parts = { readonly [K in Exclude<keyof ReferenceEntry, 'kind' | 'parameter'>]?: string | undefined }

function createEntry(found: ExtractedValue, parts: Parts): ReferenceEntry {
  return {
    kind: 'reference',
    parameter: found.parameter,
    type: parts.type,
    id: parts.id,
    url: parts.url,
    identifierSystem: parts.identifierSystem,
    identifierValue: parts.identifierValue,
  }
}
