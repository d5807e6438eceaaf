import { isResourceType } from '../definitions.ts'
import { HIERARCHY_CHARACTERS, SEARCHED_CHARACTERS } from '../limits.ts'
import type { SearchParameter } from '../r4.ts'
import { parseReference } from '../reference.ts'
import type { ReferenceValue, SearchClause, SearchError } from './clause.ts'
import { normalise } from './normalise.ts'
import { parseDate, parseNumber, parseQuantity, parseToken } from './parse-values.ts'
import { split, unescaped } from './split.ts'

interface Asked {
  readonly parameter: SearchParameter
  readonly modifier: string | undefined
  readonly values: readonly string[]
  readonly baseUrl: string
}

/** Reads the value of a parameter by its type and modifier. */
export function parseClause(
  parameter: SearchParameter,
  modifier: string | undefined,
  value: string,
  baseUrl: string,
): SearchClause | SearchError {
  if (modifier === 'missing') return parseMissing(parameter.code, value)
  const values = split(value, ',')
  if (values.includes('')) return invalid(parameter.code, 'it has no value')
  return parseByType({ parameter, modifier, values, baseUrl })
}

function parseByType(asked: Asked): SearchClause | SearchError {
  const { code, type } = asked.parameter
  switch (type) {
    case 'token':
      return parseTokens(asked)
    case 'string':
      return parseStrings(asked)
    case 'reference':
      return parseReferences(asked)
    case 'uri':
      return parseUris(asked)
    case 'date':
      return plain(asked, parseDate, values => ({ kind: 'date', parameter: code, values }))
    case 'number':
      return plain(asked, parseNumber, values => ({ kind: 'number', parameter: code, values }))
    case 'quantity':
      return plain(asked, parseQuantity, values => ({ kind: 'quantity', parameter: code, values }))
    case 'composite':
    case 'special':
      return unsupported(asked)
  }
}

function parseMissing(parameter: string, value: string): SearchClause | SearchError {
  if (value !== 'true' && value !== 'false') return invalid(parameter, ':missing takes true or false')
  return { kind: 'missing', parameter, missing: value === 'true' }
}

/** For the types that take no modifier but `:missing`. */
function plain<T>(
  asked: Asked,
  parse: (text: string) => T | undefined,
  clause: (values: readonly T[]) => SearchClause,
): SearchClause | SearchError {
  return asked.modifier === undefined ? parseEach(asked, parse, clause) : unsupported(asked)
}

function parseEach<T>(
  asked: Asked,
  parse: (text: string) => T | undefined,
  clause: (values: readonly T[]) => SearchClause,
): SearchClause | SearchError {
  const { code, type } = asked.parameter
  const values = asked.values.map(parse)
  return values.every(it => it !== undefined) ? clause(values) : invalid(code, `expected a ${type} value`)
}

function parseTokens(asked: Asked): SearchClause | SearchError {
  const parameter = asked.parameter.code
  switch (asked.modifier) {
    case undefined:
      return parseEach(asked, parseToken, values => ({ kind: 'token', parameter, negated: false, values }))
    case 'not':
      return parseEach(asked, parseToken, values => ({ kind: 'token', parameter, negated: true, values }))
    case 'text':
      return parseNormals(asked, values => ({ kind: 'text', parameter, values }))
    default:
      return unsupported(asked)
  }
}

function parseStrings(asked: Asked): SearchClause | SearchError {
  const parameter = asked.parameter.code
  switch (asked.modifier) {
    case undefined:
      return parseNormals(asked, values => ({ kind: 'string', parameter, match: 'starts', values }))
    case 'contains':
      return parseNormals(asked, values => ({ kind: 'string', parameter, match: 'contains', values }))
    case 'exact':
      return {
        kind: 'string',
        parameter,
        match: 'exact',
        values: asked.values.map(unescaped),
      }
    default:
      return unsupported(asked)
  }
}

/** For comparisons with the beginning of a text or a part of it. */
function parseNormals(
  asked: Asked,
  clause: (values: readonly string[]) => SearchClause,
): SearchClause | SearchError {
  return createTooLong(asked, SEARCHED_CHARACTERS) ?? parseEach(asked, parseNormal, clause)
}

/** No index keeps more than this of a text in its order. Only part of a longer value could be compared. */
function createTooLong({ parameter, values }: Asked, most: number): SearchError | undefined {
  if (values.every(it => unescaped(it).length <= most)) return undefined
  const text = `Cannot search by the value of ${parameter.code}: it has more than ${most} characters`
  return { kind: 'error', reason: 'too-costly', text }
}

/** Undefined where nothing is left to compare: it would match everything. */
function parseNormal(text: string): string | undefined {
  const normal = normalise(unescaped(text))
  return normal === '' ? undefined : normal
}

function parseUris(asked: Asked): SearchClause | SearchError {
  const { modifier } = asked
  if (modifier !== undefined && modifier !== 'below' && modifier !== 'above') return unsupported(asked)
  const values = asked.values.map(unescaped)
  const long = modifier && createTooLong(asked, HIERARCHY_CHARACTERS)
  if (long) return long
  return { kind: 'uri', parameter: asked.parameter.code, match: modifier ?? 'exact', values }
}

function parseReferences(asked: Asked): SearchClause | SearchError {
  const { modifier } = asked
  const parameter = asked.parameter.code
  if (modifier === 'identifier') {
    return parseEach(asked, parseToken, values => ({ kind: 'identifier', parameter, values }))
  }
  if (modifier !== undefined && !isTarget(asked.parameter, modifier)) return unsupported(asked)
  return parseEach(
    asked,
    text => referenceValue(asked, unescaped(text)),
    values => ({ kind: 'reference', parameter, values }),
  )
}

function referenceValue({ parameter, modifier, baseUrl }: Asked, text: string): ReferenceValue | undefined {
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

function unsupported({ parameter, modifier }: Asked): SearchError {
  const text = `Cannot use modifier :${modifier} with ${parameter.code}: it is not supported for ${parameter.type}`
  return { kind: 'error', reason: 'unsupported-modifier', text }
}

function invalid(code: string, why: string): SearchError {
  return { kind: 'error', reason: 'invalid-value', text: `Cannot read the value of ${code}: ${why}` }
}
