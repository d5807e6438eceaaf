import type { StatementSync } from 'node:sqlite'
import { type IndexEntry, indexEntries, patientsOf, type Resource } from '../../fhir/index.ts'
import type { Database, SqlValue } from './database.ts'
import type { Names } from './names.ts'
import { VALUE_TABLES } from './schema.ts'

/** Goes up whenever the same content would be indexed differently; the index is then made anew. */
export const INDEX_EDITION = 1

/** Keeps the search values and compartments of resources. */
export interface IndexWriter {
  /** Notes the search values of a new resource. */
  add(rid: number, resource: Resource): void
  /** Forgets the search values of a resource. */
  clear(rid: number): void
  /** Notes whose compartments a version is in. */
  place(rid: number, version: number, resource: Resource): void
  /** Forgets everything. */
  empty(): void
}

type Table = (typeof VALUE_TABLES)[number]

// These are columns of `resource`.
const OWN_COLUMNS = new Set(['_id', '_lastUpdated'])

export function indexWriter(database: Database, names: Names, baseUrl: string): IndexWriter {
  const insert: Record<Table, StatementSync> = {
    token: database.prepare('INSERT OR IGNORE INTO token VALUES (?, ?, ?, ?, ?)'),
    reference: database.prepare('INSERT OR IGNORE INTO reference VALUES (?, ?, ?, ?, ?, ?)'),
    string: database.prepare('INSERT OR IGNORE INTO string VALUES (?, ?, ?, ?)'),
    date: database.prepare('INSERT OR IGNORE INTO date VALUES (?, ?, ?, ?)'),
    quantity: database.prepare('INSERT OR IGNORE INTO quantity VALUES (?, ?, ?, ?, ?, ?, ?)'),
    uri: database.prepare('INSERT OR IGNORE INTO uri VALUES (?, ?, ?)'),
  }
  const clear = VALUE_TABLES.map(table => database.prepare(`DELETE FROM ${table} WHERE rid = ?`))
  const place = database.prepare('INSERT OR IGNORE INTO compartment VALUES (?, ?, ?, ?)')
  return {
    add(rid, resource) {
      const entries = indexEntries(resource, baseUrl)
      for (const entry of entries) {
        if (OWN_COLUMNS.has(entry.parameter) || isToldTwice(entry, entries)) continue
        const { table, values } = rowOf(entry)
        insert[table].run(rid, names.parameterId(resource.resourceType, entry.parameter), ...values)
      }
    },
    clear(rid) {
      for (const statement of clear) statement.run(rid)
    },
    place(rid, version, resource) {
      const tid = names.typeId(resource.resourceType)
      for (const patient of patientsOf(resource, baseUrl)) place.run(patient, tid, rid, version)
    },
    empty() {
      for (const table of ['compartment', ...VALUE_TABLES]) database.exec(`DELETE FROM ${table}`)
    },
  }
}

/** A CodeableConcept's text that is also the display of its code: it finds nothing more. */
function isToldTwice(entry: IndexEntry, entries: readonly IndexEntry[]): boolean {
  return (
    entry.kind === 'token' &&
    entry.code === undefined &&
    entry.system === undefined &&
    entries.some(
      it =>
        it !== entry &&
        it.kind === 'token' &&
        it.parameter === entry.parameter &&
        it.text === entry.text &&
        it.code !== undefined,
    )
  )
}

/** The columns after `rid` and `nid`. What an entry has not is the empty text. */
function rowOf(entry: IndexEntry): { readonly table: Table; readonly values: readonly SqlValue[] } {
  switch (entry.kind) {
    case 'token':
      return { table: 'token', values: [entry.code ?? '', entry.system ?? '', entry.text ?? ''] }
    case 'reference': {
      const { id, url, type, identifierSystem, identifierValue } = entry
      return {
        table: 'reference',
        values: [id ?? url ?? '', type ?? '', identifierSystem ?? '', identifierValue ?? ''],
      }
    }
    case 'string':
      return { table: 'string', values: [entry.normal, entry.exact] }
    case 'date':
      return { table: 'date', values: [entry.low, entry.high] }
    case 'number':
      return { table: 'quantity', values: [entry.low, entry.high, '', '', ''] }
    case 'quantity': {
      const { low, high, system, code, unit } = entry
      return { table: 'quantity', values: [low, high, system ?? '', code ?? '', unit ?? ''] }
    }
    case 'uri':
      return { table: 'uri', values: [entry.uri] }
  }
}
