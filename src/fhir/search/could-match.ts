import { DAY_MS } from '../../core/index.ts'
import { findSearchParameter } from '../definitions.ts'
import { SEARCHED_CHARACTERS } from '../limits.ts'
import type { Resource } from '../resource.ts'
import type {
  IndexEntry,
  MissingClause,
  QuantityEntry,
  QuantityValue,
  Range,
  RangeComparison,
  ReferenceEntry,
  ReferenceValue,
  SearchClause,
  StringClause,
  StringEntry,
  TextClause,
  TokenEntry,
  TokenValue,
} from './clause.ts'
import { indexValue } from './index-entries.ts'
import { type Comparisons, type EntryClause, meets } from './matches.ts'
import { evaluatePath, findPaths, removeTargets } from './path.ts'
import { normalize } from './values.ts'

/**
 * The test of whether another server could correctly have found a resource of the type by this clause. False only if it cannot
 * match, so that the server ignored a parameter. R4 leaves much to the server (search.html): normalization of strings, case of
 * codes, time zones of dates, unit conversion, forms of references. True wherever servers may differ or a value is unknown.
 */
export function createMatchTest(
  type: string,
  clause: SearchClause,
  baseUrl: string,
): (resource: Resource) => boolean {
  if (clause.kind === 'chain' || clause.kind === 'has' || clause.kind === 'text') return () => true
  const parameter = findSearchParameter(type, clause.parameter)
  if (!parameter || LEFT_TO_SERVER.has(parameter.code)) return () => true
  // The server may resolve more references.
  const paths = findPaths(type, parameter).map(removeTargets)
  return resource => {
    const values: Value[] = []
    for (const path of paths)
      for (const raw of evaluatePath(resource, path))
        values.push({ raw, entries: indexValue(parameter, path, raw, baseUrl) })
    return couldHold(clause, values)
  }
}

function couldHold(
  clause: Exclude<EntryClause, TextClause> | MissingClause,
  values: readonly Value[],
): boolean {
  if (values.length === 0 && clause.parameter === '_lastUpdated') return true
  if (clause.kind === 'missing') return clause.missing ? !values.some(hasEntry) : values.length > 0
  if (values.some(it => !hasEntry(it))) return true
  if (clause.kind === 'token' && clause.negated)
    // Servers differ on resources with several codes, and on those with none.
    return values.length === 0 || !values.every(it => it.entries.every(entry => meets(clause, entry)))
  return values.some(it => meetsSomehow(clause, it, values))
}

// Servers compare by sound.
const LEFT_TO_SERVER: ReadonlySet<string> = new Set(['phonetic'])
// Servers compare the digits, not the formatting.
const CONTACTS: ReadonlySet<string> = new Set(['telecom', 'phone', 'fax', 'email'])

/** A value that a parameter selects from the resource, and its index entries. */
interface Value {
  readonly raw: unknown
  readonly entries: readonly IndexEntry[]
}

function hasEntry({ entries }: Value): boolean {
  return entries.length > 0
}

function meetsSomehow(clause: EntryClause, { raw, entries }: Value, all: readonly Value[]): boolean {
  if (clause.kind === 'string' && clause.match !== 'exact') return hasWords(clause, all)
  // A bare code has no system in the resource; servers differ in the system they assume.
  const isBare = typeof raw !== 'object' || CONTACTS.has(clause.parameter)
  return entries.some(entry => meets(clause, entry, isBare ? BARE : TOLERANT))
}

/** Whether the texts of the parameter contain each word of one of the values. */
function hasWords({ values }: StringClause, all: readonly Value[]): boolean {
  const texts = all.flatMap(({ entries }) => entries.filter(it => it.kind === 'string'))
  // Other servers search more than the beginning.
  if (texts.some(it => it.exact.length > SEARCHED_CHARACTERS)) return true
  const text = texts.map(it => foldLetters(it.normal)).join(' ')
  const words = values.map(value => normalize(value).split(' ').map(foldLetters))
  // Servers normalize other scripts differently.
  if (![text, ...words.flat()].every(it => /^[a-z0-9 ]*$/.test(it))) return true
  return words.some(some => some.every(word => text.includes(word)))
}

function foldLetters(text: string): string {
  return text.replace(/[!-/:-@[-`{-~\s]+/g, '')
}

const TOLERANT: Comparisons = {
  token: couldBeToken,
  string: couldBeExact,
  reference: couldBeReference,
  identifier: (value, entry) =>
    couldBeToken(value, {
      kind: 'token',
      parameter: '',
      system: entry.identifierSystem,
      code: entry.identifierValue,
      text: undefined,
    }),
  date: (value, entry) => couldCompare(value, { low: entry.low - DAY_MS, high: entry.high + DAY_MS }),
  number: couldCompare,
  quantity: couldBeQuantity,
  uri: couldBeUri,
}

const BARE: Comparisons = {
  ...TOLERANT,
  token: ({ code }, entry) =>
    code === undefined || foldLetters(fold(code)) === foldLetters(fold(entry.code ?? '')),
}

/** A date without a time zone is in the server's time zone. */
function fold(text: string): string {
  return toNormalForm(text, 'NFKC').toLowerCase().trim()
}

/**
 * A text with more than 30 combining marks in a row, which no language has (Unicode, UAX #15, section 13), is left as it
 * is: the time to put the marks in order grows with the square of their number.
 */
function toNormalForm(text: string, form: 'NFC' | 'NFKC'): string {
  return /\p{M}{31}/u.test(text) ? text : text.normalize(form)
}

function couldBeToken(value: TokenValue, entry: TokenEntry): boolean {
  if (entry.code === undefined && entry.system === undefined) return false
  const hasSystem = value.system === undefined || fold(value.system ?? '') === fold(entry.system ?? '')
  return hasSystem && (value.code === undefined || fold(value.code) === fold(entry.code ?? ''))
}

function couldBeExact(_match: StringClause['match'], value: string, entry: StringEntry): boolean {
  return toNormalForm(value, 'NFC').trim() === toNormalForm(entry.exact, 'NFC').trim()
}

function couldBeReference(value: ReferenceValue, entry: ReferenceEntry): boolean {
  if (value.kind === 'url')
    return entry.url !== undefined && normalizeUri(entry.url) === normalizeUri(value.url)
  const types = value.types?.length === 1 ? value.types : undefined
  if (entry.url !== undefined)
    return (
      entry.url.startsWith('urn:') ||
      (types ?? ['']).some(type => normalizeUri(entry.url ?? '').endsWith(`${type}/${value.id}`))
    )
  return entry.id === value.id && (!types || types.includes(entry.type ?? ''))
}

/** Without version and fragment (`_source` has one on some servers). */
function normalizeUri(uri: string): string {
  return uri
    .replace(/[|#].*$/, '')
    .replace(/\/_history\/[^/]+$/, '')
    .replace(/\/$/, '')
}

function couldBeUri(match: 'exact' | 'below' | 'above', value: string, uri: string): boolean {
  const asked = normalizeUri(value)
  const found = normalizeUri(uri)
  if (match === 'below') return found.startsWith(asked)
  return match === 'above' ? asked.startsWith(found) : asked === found
}

function couldBeQuantity(value: QuantityValue, entry: QuantityEntry): boolean {
  const isSameUnit = value.code === undefined || value.code === entry.code || value.code === entry.unit
  // The server may convert units.
  return !isSameUnit || couldCompare(value, entry)
}

function couldCompare({ prefix, low, high }: RangeComparison, entry: Range): boolean {
  switch (prefix) {
    case 'eq':
      return entry.low <= high && entry.high >= low
    case 'gt':
    case 'ge':
    case 'sa':
      return entry.high >= low
    case 'lt':
    case 'le':
    case 'eb':
      return entry.low <= high
    case 'ne':
    case 'ap':
      return true
  }
}
