import { isResourceType } from '../definitions.ts'
import { HIERARCHY_CHARACTERS, SEARCHED_CHARACTERS } from '../limits.ts'
import { parseReference } from '../reference.ts'
import type { SearchParameter } from '../resource.ts'
import { failSearch, type SearchError } from './bad-search.ts'
import type { ReferenceValue, SearchClause } from './clause.ts'
import {
  lowerAscii,
  normalize,
  parseDate,
  parseNumber,
  parseQuantity,
  parseToken,
  unescapeValue,
} from './values.ts'

/** The value of a parameter, whole and at its commas. */
interface Value {
  readonly value: string
  readonly values: readonly string[]
  readonly baseUrl: string
}

interface RawParameter {
  readonly parameter: SearchParameter
  readonly modifier: string | undefined
  readonly values: readonly string[]
  readonly baseUrl: string
}

/** Parses the value of a parameter by its type and modifier. */
export function parseClause(
  parameter: SearchParameter,
  modifier: string | undefined,
  { value, values, baseUrl }: Value,
): SearchClause | SearchError {
  if (modifier === 'missing') return parseMissing(parameter.code, value)
  if (values.includes('')) return failSearch('value-missing', { parameter: parameter.code })
  return parseByType({ parameter, modifier, values, baseUrl })
}

function parseByType(raw: RawParameter): SearchClause | SearchError {
  const { code, type } = raw.parameter
  switch (type) {
    case 'token':
      return parseTokens(raw)
    case 'string':
      return parseStrings(raw)
    case 'reference':
      return parseReferences(raw)
    case 'uri':
      return parseUris(raw)
    case 'date':
      return parsePlain(raw, parseDate, values => ({ kind: 'date', parameter: code, values }))
    case 'number':
      return parsePlain(raw, parseNumber, values => ({ kind: 'number', parameter: code, values }))
    case 'quantity':
      return parsePlain(raw, parseQuantity, values => ({ kind: 'quantity', parameter: code, values }))
    case 'composite':
    case 'special':
      return createUnsupported(raw)
  }
}

function parseMissing(parameter: string, value: string): SearchClause | SearchError {
  if (value !== 'true' && value !== 'false') return failSearch('missing-value-malformed', { parameter })
  return { kind: 'missing', parameter, missing: value === 'true' }
}

/** For the types whose only modifier is `:missing`. */
function parsePlain<T>(
  raw: RawParameter,
  parse: (text: string) => T | undefined,
  clause: (values: readonly T[]) => SearchClause,
): SearchClause | SearchError {
  return raw.modifier === undefined ? parseEach(raw, parse, clause) : createUnsupported(raw)
}

function parseEach<T>(
  raw: RawParameter,
  parse: (text: string) => T | undefined,
  clause: (values: readonly T[]) => SearchClause,
): SearchClause | SearchError {
  const { code, type } = raw.parameter
  const values = raw.values.map(parse)
  return values.every(it => it !== undefined)
    ? clause(values)
    : failSearch('value-malformed', { parameter: code, type })
}

function parseTokens(raw: RawParameter): SearchClause | SearchError {
  const parameter = raw.parameter.code
  switch (raw.modifier) {
    case undefined:
      return parseEach(raw, parseToken, values => ({ kind: 'token', parameter, negated: false, values }))
    case 'not':
      return parseEach(raw, parseToken, values => ({ kind: 'token', parameter, negated: true, values }))
    case 'text':
      return parseNormals(raw, values => ({ kind: 'text', parameter, values }))
    case 'contains':
      return parameter === 'identifier' ? parseParts(raw) : createUnsupported(raw)
    default:
      return createUnsupported(raw)
  }
}

function parseStrings(raw: RawParameter): SearchClause | SearchError {
  const parameter = raw.parameter.code
  switch (raw.modifier) {
    case undefined:
      return parseNormals(raw, values => ({ kind: 'string', parameter, match: 'starts', values }))
    case 'contains':
      return parseNormals(raw, values => ({ kind: 'string', parameter, match: 'contains', values }))
    case 'exact':
      return {
        kind: 'string',
        parameter,
        match: 'exact',
        values: raw.values.map(unescapeValue),
      }
    default:
      return createUnsupported(raw)
  }
}

function parseParts(raw: RawParameter): SearchClause | SearchError {
  const parse = (text: string) => lowerAscii(unescapeValue(text).trim()) || undefined
  const parameter = raw.parameter.code
  return (
    createTooLong(raw, SEARCHED_CHARACTERS) ??
    parseEach(raw, parse, values => ({ kind: 'part', parameter, values }))
  )
}

/** For searches by prefix or substring. */
function parseNormals(
  raw: RawParameter,
  clause: (values: readonly string[]) => SearchClause,
): SearchClause | SearchError {
  return createTooLong(raw, SEARCHED_CHARACTERS) ?? parseEach(raw, parseNormal, clause)
}

/** The index stores no more of a text, so a longer value cannot be compared as a whole. */
function createTooLong({ parameter, values }: RawParameter, most: number): SearchError | undefined {
  if (values.every(it => unescapeValue(it).length <= most)) return undefined
  return failSearch('value-too-long', { parameter: parameter.code, most })
}

/** Undefined if the normalized value is empty: it would match everything. */
function parseNormal(text: string): string | undefined {
  const normal = normalize(unescapeValue(text))
  return normal === '' ? undefined : normal
}

function parseUris(raw: RawParameter): SearchClause | SearchError {
  const { modifier } = raw
  if (modifier !== undefined && modifier !== 'below' && modifier !== 'above') return createUnsupported(raw)
  const values = raw.values.map(unescapeValue)
  const long = modifier && createTooLong(raw, HIERARCHY_CHARACTERS)
  if (long) return long
  return { kind: 'uri', parameter: raw.parameter.code, match: modifier ?? 'exact', values }
}

function parseReferences(raw: RawParameter): SearchClause | SearchError {
  const { modifier } = raw
  const parameter = raw.parameter.code
  if (modifier === 'identifier') {
    return parseEach(raw, parseToken, values => ({ kind: 'identifier', parameter, values }))
  }
  if (modifier !== undefined && !isTarget(raw.parameter, modifier)) return createUnsupported(raw)
  return parseEach(
    raw,
    text => parseReferenceValue(raw, unescapeValue(text)),
    values => ({ kind: 'reference', parameter, values }),
  )
}

function parseReferenceValue(
  { parameter, modifier, baseUrl }: RawParameter,
  text: string,
): ReferenceValue | undefined {
  const local = parseReference(text, baseUrl)
  if (local !== undefined) {
    return modifier === undefined || modifier === local.type
      ? { kind: 'local', types: [local.type], id: local.id }
      : undefined
  }
  if (/^[A-Za-z0-9\-.]{1,64}$/.test(text))
    return { kind: 'local', types: modifier === undefined ? parameter.target : [modifier], id: text }
  return modifier === undefined && /^[A-Za-z][A-Za-z0-9+.-]*:./.test(text)
    ? { kind: 'url', url: text }
    : undefined
}

function isTarget(parameter: SearchParameter, type: string): boolean {
  return isResourceType(type) && (parameter.target === undefined || parameter.target.includes(type))
}

function createUnsupported({ parameter, modifier }: RawParameter): SearchError {
  const { code, type } = parameter
  return failSearch('modifier-unsupported', { modifier: `${modifier}`, parameter: code, type })
}
