import type { StatementSync } from 'node:sqlite'
import {
  findContainedPatients,
  type IndexEntry,
  indexEntries,
  limits,
  patientsOf,
  type Resource,
} from '../../../fhir/index.ts'
import type { Database, SqlValue } from './database.ts'
import { indexText } from './index-text.ts'
import type { Names } from './names.ts'
import { VALUE_TABLES } from './schema.ts'

/** Goes up whenever the same content would be indexed differently; the index is then made anew. */
export const INDEX_EDITION = 5

/** Keeps the search values and compartments of resources. */
export interface IndexWriter {
  /** Notes the search values of a new resource, unless they are over `mostRows`: then it returns false. */
  add(rid: number, resource: Resource): boolean
  /** Forgets the search values of a resource. */
  clear(rid: number): void
  /** Stores the compartments of a version, and the patients of its contained resources. */
  place(rid: number, version: number, resource: Resource): void
  /** Forgets everything. */
  empty(): void
  /** How many rows were written or removed since the file was opened; a long value counts as several. */
  rows(): number
}

type Table = (typeof VALUE_TABLES)[number]

// These are columns of `resource`.
const OWN_COLUMNS = new Set(['_id', '_lastUpdated'])

export function indexWriter(
  database: Database,
  names: Names,
  baseUrl: string,
  mostRows = Number.POSITIVE_INFINITY,
): IndexWriter {
  const insert: Record<Table, StatementSync> = {
    token: database.prepare('INSERT OR IGNORE INTO token VALUES (?, ?, ?, ?, ?)'),
    reference: database.prepare('INSERT OR IGNORE INTO reference VALUES (?, ?, ?, ?, ?, ?)'),
    string: database.prepare('INSERT OR IGNORE INTO string VALUES (?, ?, ?, ?)'),
    date: database.prepare('INSERT OR IGNORE INTO date VALUES (?, ?, ?, ?)'),
    quantity: database.prepare('INSERT OR IGNORE INTO quantity VALUES (?, ?, ?, ?, ?, ?, ?)'),
    uri: database.prepare('INSERT OR IGNORE INTO uri VALUES (?, ?, ?)'),
  }
  const clear = VALUE_TABLES.map(table => database.prepare(`DELETE FROM ${table} WHERE rid = ?`))
  let rows = 0
  const place = database.prepare('INSERT OR IGNORE INTO compartment VALUES (?, ?, ?, ?)')
  const contain = database.prepare('INSERT INTO contained_patient VALUES (?, ?, ?)')
  return {
    add(rid, resource) {
      const entries = indexEntries(resource, baseUrl)
      const entryRows = entries.map(rowOf)
      const size = entryRows.reduce((sum, row) => sum + sizeOf(row), 0)
      if (size > mostRows) return false
      const displayed = displayedTexts(entries)
      rows += size
      for (const [at, { table, values }] of entryRows.entries()) {
        const entry = entries[at]
        if (!entry || OWN_COLUMNS.has(entry.parameter) || isToldTwice(entry, displayed)) continue
        insert[table].run(rid, names.parameterId(resource.resourceType, entry.parameter), ...values)
      }
      return true
    },
    clear(rid) {
      for (const statement of clear) rows += Number(statement.run(rid).changes)
    },
    place(rid, version, resource) {
      const tid = names.typeId(resource.resourceType)
      for (const patient of patientsOf(resource, baseUrl)) place.run(patient, tid, rid, version)
      for (const patient of findContainedPatients(resource, baseUrl)) contain.run(rid, version, patient)
    },
    empty() {
      for (const table of ['compartment', 'contained_patient', ...VALUE_TABLES])
        database.exec(`DELETE FROM ${table}`)
    },
    rows: () => rows,
  }
}

/** A CodeableConcept's text that is also the display of its code: it finds nothing more. */
function isToldTwice(entry: IndexEntry, displayed: ReadonlySet<string>): boolean {
  return (
    entry.kind === 'token' &&
    entry.code === undefined &&
    entry.system === undefined &&
    displayed.has(`${entry.parameter} ${entry.text}`)
  )
}

/** The displays of codes, by parameter. */
function displayedTexts(entries: readonly IndexEntry[]): ReadonlySet<string> {
  const texts = new Set<string>()
  for (const entry of entries)
    if (entry.kind === 'token' && entry.code !== undefined && entry.text !== undefined)
      texts.add(`${entry.parameter} ${entry.text}`)
  return texts
}

interface Row {
  readonly table: Table
  readonly values: readonly SqlValue[]
}

/** How many rows a row counts as: a long one takes as long to write as several. */
function sizeOf({ values }: Row): number {
  const characters = values.reduce<number>(
    (sum, value) => sum + (typeof value === 'string' ? value.length : 0),
    0,
  )
  return Math.max(1, Math.ceil(characters / limits.INDEX_ROW_CHARACTERS))
}

/** The columns after `rid` and `nid`. What an entry has not is the empty text. */
function rowOf(entry: IndexEntry): Row {
  switch (entry.kind) {
    case 'token':
      return { table: 'token', values: [keyOf(entry.code), keyOf(entry.system), entry.text ?? ''] }
    case 'reference': {
      const { id, url, type, identifierSystem, identifierValue } = entry
      return {
        table: 'reference',
        values: [keyOf(id ?? url), type ?? '', keyOf(identifierSystem), keyOf(identifierValue)],
      }
    }
    case 'string':
      return { table: 'string', values: [entry.normal, keyOf(entry.exact)] }
    case 'date':
      return { table: 'date', values: [entry.low, entry.high] }
    case 'number':
      return { table: 'quantity', values: [entry.low, entry.high, '', '', ''] }
    case 'quantity': {
      const { low, high, system, code, unit } = entry
      return { table: 'quantity', values: [low, high, keyOf(system), keyOf(code), keyOf(unit)] }
    }
    case 'uri':
      return { table: 'uri', values: [keyOf(entry.uri)] }
  }
}

function keyOf(text = ''): string {
  return indexText(text)
}
