import { hash } from 'node:crypto'
import type { StatementSync } from 'node:sqlite'
import {
  findCompartmentPatients,
  findContainedPatients,
  type IndexEntry,
  indexResource,
  limits,
  type Resource,
} from '../../../fhir/index.ts'
import { compareValues, type Database, type SqlValue } from './database.ts'
import { hasFamilyName, type Names, OTHER_WORDS } from './names.ts'
import { VALUE_COLUMNS, VALUE_TABLES, type ValueTable, WIDTHS } from './schema.ts'

/** Increase it whenever the same content is indexed differently: the index is then rebuilt. */
export const INDEX_EDITION = 6

/** Writes the search values and compartments of resources. */
export interface IndexWriter {
  /** Finds the search values and compartments of a resource; undefined if they take more than `maxRows`. */
  prepare(resource: Resource): PreparedIndex | undefined
  /** Adds the search values of a resource. */
  add(rid: number, prepared: PreparedIndex): void
  /** Removes the search values of a resource. */
  clear(rid: number): void
  /** The number of search values of a resource, up to `most`. */
  count(rid: number, most: number): number
  /** Adds the compartments of a version, and the patients of its contained resources. */
  addVersion(rid: number, version: number, prepared: PreparedVersion): void
  /** Removes everything. */
  clearAll(): void
}

/** The compartments of a version, and the patients of its contained resources. */
export interface PreparedVersion {
  readonly tid: number
  readonly patients: Iterable<string>
  readonly contained: Iterable<string>
}

/** The rows of a resource, found before they are written. */
export interface PreparedIndex extends PreparedVersion {
  readonly rows: readonly PreparedRow[]
  readonly spans: ReadonlyMap<number, Span>
  /** The number of rows; a long value counts as several. */
  readonly size: number
}

interface PreparedRow extends Row {
  readonly nid: number
}

// These are columns of `resource`.
const OWN_COLUMNS = new Set(['_id', '_lastUpdated'])

export function createIndexWriter(
  database: Database,
  names: Names,
  baseUrl: string,
  maxRows = Number.POSITIVE_INFINITY,
): IndexWriter {
  const insert = Object.fromEntries(
    VALUE_TABLES.map(table => [
      table,
      prepareInsert(database, table, ['rid', 'nid', ...VALUE_COLUMNS[table]]),
    ]),
  ) as Record<ValueTable, StatementSync>
  const clear = VALUE_TABLES.map(table => database.prepare(`DELETE FROM ${table} WHERE rid = ?`))
  const counts = VALUE_TABLES.map(
    table => `SELECT count(*) FROM (SELECT 1 FROM ${table} WHERE rid = ? LIMIT ?)`,
  )
  const addCompartment = prepareInsert(database, 'compartment', ['patient', 'tid', 'rid', 'version'])
  const addContained = prepareInsert(database, 'contained_patient', ['rid', 'version', 'patient'])
  return {
    prepare(resource) {
      const entries = indexResource(resource, baseUrl)
      const entryRows = entries.map(toRow)
      const size = entryRows.reduce((sum, row) => sum + countRowsOf(row), 0)
      if (size > maxRows) return undefined
      const displays = findDisplays(entries)
      const rows: PreparedRow[] = []
      const spans = new Map<number, Span>()
      for (const [at, row] of entryRows.entries()) {
        const entry = entries[at]
        if (!entry || OWN_COLUMNS.has(entry.parameter) || repeatsDisplay(entry, displays)) continue
        const nid = names.parameterId(resource.resourceType, entry.parameter)
        rows.push({ ...row, nid })
        widenSpan(spans, nid, row.table, row.values)
      }
      if (hasFamilyName(resource.resourceType)) {
        const nid = names.parameterId(resource.resourceType, OTHER_WORDS)
        for (const word of findOtherWords(entries)) rows.push({ table: 'string', nid, values: [word, ''] })
      }
      return { ...prepareVersion(resource, names, baseUrl), rows, spans, size }
    },
    add(rid, { rows, spans }) {
      for (const { table, nid, values } of rows) insert[table].run(rid, nid, ...values)
      for (const [nid, { low, high, isWide }] of spans) if (isWide) insert.span.run(rid, nid, low, high)
    },
    clear(rid) {
      for (const statement of clear) statement.run(rid)
    },
    count: (rid, most) => counts.reduce((sum, it) => sum + Number(database.rows(it, [rid, most])[0]?.[0]), 0),
    addVersion(rid, version, { tid, patients, contained }) {
      for (const patient of patients) addCompartment.run(patient, tid, rid, version)
      for (const patient of contained) addContained.run(rid, version, patient)
    },
    clearAll() {
      for (const table of ['compartment', 'contained_patient', ...VALUE_TABLES])
        database.exec(`DELETE FROM ${table}`)
    },
  }
}

export function prepareVersion(resource: Resource, names: Names, baseUrl: string): PreparedVersion {
  return {
    tid: names.typeId(resource.resourceType),
    patients: findCompartmentPatients(resource, baseUrl),
    contained: findContainedPatients(resource, baseUrl),
  }
}

/**
 * The first words of all texts of a name, without that of the family name by which the resource is sorted. A search by one
 * word finds a resource by that family name or by one of these.
 */
function findOtherWords(entries: readonly IndexEntry[]): ReadonlySet<string> {
  const listTexts = (parameter: string) =>
    entries.flatMap(it => (it.kind === 'string' && it.parameter === parameter ? it.normal : []))
  const words = new Set(listTexts('name').map(findFirstWord))
  const [family] = listTexts('family').toSorted(compareValues)
  if (family !== undefined) words.delete(findFirstWord(family))
  return words
}

function findFirstWord(text: string): string {
  return text.split(' ', 1)[0] ?? ''
}

function prepareInsert(database: Database, table: string, columns: readonly string[]): StatementSync {
  const places = columns.map(() => '?').join(', ')
  return database.prepare(`INSERT OR IGNORE INTO ${table} (${columns.join(', ')}) VALUES (${places})`)
}

/** The lowest and the highest value of a parameter of one resource. */
interface Span {
  readonly low: SqlValue
  readonly high: SqlValue
  readonly isWide: boolean
}

function widenSpan(
  spans: Map<number, Span>,
  nid: number,
  table: ValueTable,
  values: readonly SqlValue[],
): void {
  const [low = null, high = null] = table === 'string' ? [values[0], values[0]] : values
  const width = WIDTHS[table]
  if (width === undefined) return
  const known = spans.get(nid)
  if (!known) spans.set(nid, { low, high, isWide: Number(high) - Number(low) > width })
  else if (low !== known.low || high !== known.high)
    spans.set(nid, { low: pickLower(low, known.low), high: pickHigher(high, known.high), isWide: true })
}

function pickLower(a: SqlValue, b: SqlValue): SqlValue {
  return compareValues(a, b) < 0 ? a : b
}

function pickHigher(a: SqlValue, b: SqlValue): SqlValue {
  return compareValues(a, b) > 0 ? a : b
}

/** Whether the text of a CodeableConcept is also the display of its code, so that it finds nothing more. */
function repeatsDisplay(entry: IndexEntry, displays: ReadonlySet<string>): boolean {
  return (
    entry.kind === 'token' &&
    entry.code === undefined &&
    entry.system === undefined &&
    displays.has(`${entry.parameter} ${entry.text}`)
  )
}

/** The displays of codes, by parameter. */
function findDisplays(entries: readonly IndexEntry[]): ReadonlySet<string> {
  const texts = new Set<string>()
  for (const entry of entries)
    if (entry.kind === 'token' && entry.code !== undefined && entry.text !== undefined)
      texts.add(`${entry.parameter} ${entry.text}`)
  return texts
}

interface Row {
  readonly table: ValueTable
  readonly values: readonly SqlValue[]
}

/** A long row takes as long to write as several. */
function countRowsOf({ values }: Row): number {
  const characters = values.reduce<number>(
    (sum, value) => sum + (typeof value === 'string' ? value.length : 0),
    0,
  )
  return Math.max(1, Math.ceil(characters / limits.INDEX_ROW_CHARACTERS))
}

/** The columns after `rid` and `nid`. A missing value is the empty text. */
function toRow(entry: IndexEntry): Row {
  switch (entry.kind) {
    case 'token':
      return { table: 'token', values: [toKey(entry.code), toKey(entry.system), entry.text ?? ''] }
    case 'reference': {
      const { id, url, type, identifierSystem, identifierValue } = entry
      return {
        table: 'reference',
        values: [toKey(id ?? url), type ?? '', toKey(identifierSystem), toKey(identifierValue)],
      }
    }
    case 'string':
      return { table: 'string', values: [entry.normal, toKey(entry.exact)] }
    case 'date':
      return { table: 'date', values: [entry.low, entry.high] }
    case 'number':
      return { table: 'quantity', values: [entry.low, entry.high, '', '', ''] }
    case 'quantity': {
      const { low, high, system, code, unit } = entry
      return { table: 'quantity', values: [low, high, toKey(system), toKey(code), toKey(unit)] }
    }
    case 'uri':
      return { table: 'uri', values: [toKey(entry.uri)] }
  }
}

const MAX_CHARACTERS = 400

/**
 * A text as the index stores it: a long one as its beginning and its hash. SQLite reads a whole key to compare it, so that
 * one long key would slow down every search that passes it. Only a hashed text has `MAX_CHARACTERS` characters, so that no two
 * texts have the same key. Its first `HIERARCHY_CHARACTERS` are those of the text.
 */
export function toKey(text = ''): string {
  if (text.length < MAX_CHARACTERS) return text
  const digest = hash('sha256', text)
  return text.slice(0, MAX_CHARACTERS - digest.length) + digest
}
