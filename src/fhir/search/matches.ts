import { isFailure, remember } from '../../core/index.ts'
import { findSearchParameter } from '../definitions.ts'
import type { Resource, SearchParameter } from '../resource.ts'
import type {
  IndexEntry,
  QuantityEntry,
  QuantityValue,
  Range,
  RangeComparison,
  ReferenceEntry,
  ReferenceValue,
  SearchClause,
  StringClause,
  StringEntry,
  TokenEntry,
  TokenValue,
  UriClause,
} from './clause.ts'
import { indexParameter } from './index-entries.ts'
import { parseUncounted } from './parse-search.ts'
import { lowerAscii } from './values.ts'

/**
 * Whether a search by this one parameter finds the resource. Undefined if that is unknown: an unknown parameter, an
 * unsupported modifier, an invalid value, or a chain. An access check must then refuse.
 */
export function matches(
  resource: Resource,
  name: string,
  value: string,
  baseUrl: string,
): boolean | undefined {
  const clause = parseUncounted(resource.resourceType, name, value, baseUrl)
  return isFailure(clause) ? undefined : matchesClause(resource, clause, baseUrl)
}

/**
 * Tests a resource by several parameters: its entries are determined once for each parameter. Parameters that
 * recur, such as those of a granular scope, are parsed once.
 */
export function createMatcher(
  resource: Resource,
  baseUrl: string,
): (parameter: readonly [name: string, value: string]) => boolean | undefined {
  const found = new Map<SearchParameter, readonly IndexEntry[]>()
  return pair => {
    const clause = readClause(resource.resourceType, pair, baseUrl)
    if (isFailure(clause)) return undefined
    const parameter = findSearchParameter(resource.resourceType, clause.parameter)
    if (parameter === undefined) return undefined
    return holds(
      clause,
      remember(found, parameter, () => indexParameter(resource, parameter, baseUrl)),
    )
  }
}

type Clause = ReturnType<typeof parseUncounted>

const clauses = new WeakMap<readonly [string, string], Map<string, Clause>>()

function readClause(type: string, pair: readonly [name: string, value: string], baseUrl: string): Clause {
  const known = remember(clauses, pair, () => new Map<string, Clause>())
  return remember(known, `${type} ${baseUrl}`, () => parseUncounted(type, ...pair, baseUrl))
}

export function matchesClause(
  resource: Resource,
  clause: SearchClause,
  baseUrl: string,
): boolean | undefined {
  const parameter = findSearchParameter(resource.resourceType, clause.parameter)
  return parameter === undefined ? undefined : holds(clause, indexParameter(resource, parameter, baseUrl))
}

/** Comparisons of one value of a search with one index entry of a resource. */
export interface Comparisons {
  readonly token: (value: TokenValue, entry: TokenEntry) => boolean
  readonly string: (match: StringClause['match'], value: string, entry: StringEntry) => boolean
  readonly reference: (value: ReferenceValue, entry: ReferenceEntry) => boolean
  readonly identifier: (value: TokenValue, entry: ReferenceEntry) => boolean
  readonly date: (value: RangeComparison, entry: Range) => boolean
  readonly number: (value: RangeComparison, entry: Range) => boolean
  readonly quantity: (value: QuantityValue, entry: QuantityEntry) => boolean
  readonly uri: (match: UriClause['match'], value: string, uri: string) => boolean
}

/**
 * Whether a clause holds for a resource with these entries of the clause's parameter. Undefined for a chain and `_has`,
 * which depend on other resources.
 */
function holds(clause: SearchClause, entries: readonly IndexEntry[]): boolean | undefined {
  switch (clause.kind) {
    case 'chain':
    case 'has':
      return undefined
    case 'missing':
      return clause.missing === (entries.length === 0)
    case 'token':
      return clause.negated !== entries.some(it => meets(clause, it))
    case 'text':
    case 'part':
    case 'string':
    case 'reference':
    case 'identifier':
    case 'date':
    case 'number':
    case 'quantity':
    case 'uri':
      return entries.some(it => meets(clause, it))
  }
}

/** The clauses that are evaluated on the search values of a resource. */
export type EntryClause = Exclude<SearchClause, { readonly kind: 'chain' | 'has' | 'missing' }>

/** Whether one entry has one of the clause's values (before `:not`). */
export function meets(clause: EntryClause, entry: IndexEntry, by: Comparisons = EXACT): boolean {
  switch (clause.kind) {
    case 'token':
      return entry.kind === 'token' && clause.values.some(it => by.token(it, entry))
    case 'text':
      return entry.kind === 'token' && clause.values.some(it => entry.text?.startsWith(it) === true)
    case 'part':
      return entry.kind === 'token' && clause.values.some(it => lowerAscii(entry.code ?? '').includes(it))
    case 'string':
      return entry.kind === 'string' && clause.values.some(it => by.string(clause.match, it, entry))
    case 'reference':
      return entry.kind === 'reference' && clause.values.some(it => by.reference(it, entry))
    case 'identifier':
      return entry.kind === 'reference' && clause.values.some(it => by.identifier(it, entry))
    case 'date':
      return entry.kind === 'date' && clause.values.some(it => by.date(it, entry))
    case 'number':
      return entry.kind === 'number' && clause.values.some(it => by.number(it, entry))
    case 'quantity':
      return entry.kind === 'quantity' && clause.values.some(it => by.quantity(it, entry))
    case 'uri':
      return entry.kind === 'uri' && clause.values.some(it => by.uri(clause.match, it, entry.uri))
  }
}

function isToken(value: TokenValue, entry: TokenEntry): boolean {
  if (entry.code === undefined && entry.system === undefined) return false
  return hasSystem(value, entry.system) && (value.code === undefined || value.code === entry.code)
}

function isIdentifier(value: TokenValue, entry: ReferenceEntry): boolean {
  if (entry.identifierValue === undefined || !hasSystem(value, entry.identifierSystem)) return false
  return value.code === undefined || value.code === entry.identifierValue
}

function hasSystem(value: TokenValue, system: string | undefined): boolean {
  return value.system === undefined || (value.system ?? undefined) === system
}

function isString(match: StringClause['match'], value: string, entry: StringEntry): boolean {
  switch (match) {
    case 'exact':
      return entry.exact === value
    case 'starts':
      return entry.normal.startsWith(value)
    case 'contains':
      return entry.normal.includes(value)
  }
}

function isReference(value: ReferenceValue, entry: ReferenceEntry): boolean {
  if (value.kind === 'url') return entry.url === value.url
  if (entry.type === undefined || entry.id !== value.id) return false
  return value.types === undefined || value.types.includes(entry.type)
}

function isQuantity(value: QuantityValue, entry: QuantityEntry): boolean {
  if (!compares(value, entry)) return false
  if (value.system !== undefined) {
    return entry.system === value.system && (value.code === undefined || entry.code === value.code)
  }
  return value.code === undefined || entry.code === value.code || entry.unit === value.code
}

function isUri(match: UriClause['match'], value: string, uri: string): boolean {
  switch (match) {
    case 'exact':
      return uri === value
    case 'below':
      return isUnder(uri, value)
    case 'above':
      return isUnder(value, uri)
  }
}

function isUnder(uri: string, root: string): boolean {
  return uri === root || uri.startsWith(root.endsWith('/') ? root : `${root}/`)
}

/** R4 search.html#prefix. */
function compares(value: RangeComparison, entry: Range): boolean {
  const within = entry.low >= value.low && entry.high <= value.high
  switch (value.prefix) {
    case 'eq':
      return within
    case 'ne':
      return !within
    case 'gt':
      return entry.high > value.high
    case 'ge':
      return entry.high > value.high || within
    case 'lt':
      return entry.low < value.low
    case 'le':
      return entry.low < value.low || within
    case 'sa':
      return entry.low > value.high
    case 'eb':
      return entry.high < value.low
    case 'ap':
      return entry.low <= value.high && entry.high >= value.low
  }
}

/** The comparisons of this server. */
const EXACT: Comparisons = {
  token: isToken,
  string: isString,
  reference: isReference,
  identifier: isIdentifier,
  date: compares,
  number: compares,
  quantity: isQuantity,
  uri: isUri,
}
