import { type IndexEntry, indexEntries, patientsOf, type Resource } from '../../fhir/index.ts'
import type { Database, SqlValue } from './database.ts'
import type { Names } from './names.ts'

/** Goes up whenever the index tables of the same content would be filled differently; the index is then made anew. */
export const INDEX_EDITION = 1

/** Keeps the search values and compartments of resources. */
export interface IndexWriter {
  /** Replaces the search values of a resource; `undefined` is the content of one that does not live. */
  replace(rid: number, type: string, before: Resource | undefined, after: Resource | undefined): void
  /** Notes whose compartments a version is in. */
  place(rid: number, version: number, resource: Resource): void
}

type Table = 'token' | 'reference' | 'string' | 'date' | 'quantity' | 'uri'
interface Row {
  readonly table: Table
  readonly values: readonly SqlValue[]
}

const COLUMNS = {
  token: ['nid', 'code', 'rid', 'system', 'text'],
  reference: ['nid', 'id', 'type', 'rid', 'system', 'value'],
  string: ['nid', 'normal', 'rid', 'exact'],
  date: ['nid', 'rid', 'low', 'high'],
  quantity: ['nid', 'rid', 'low', 'high', 'system', 'code', 'unit'],
  uri: ['nid', 'uri', 'rid'],
} as const satisfies Record<Table, readonly string[]>

// These are columns of `resource`.
const OWN_COLUMNS = new Set(['_id', '_lastUpdated'])

export function indexWriter(database: Database, names: Names, baseUrl: string): IndexWriter {
  const insert = eachTable(
    (table, columns) => `INSERT OR IGNORE INTO ${table} VALUES (${columns.map(() => '?')})`,
  )
  const remove = eachTable(
    (table, columns) => `DELETE FROM ${table} WHERE ${columns.map(column => `${column} = ?`).join(' AND ')}`,
  )
  const compartment = database.prepare('INSERT OR IGNORE INTO compartment VALUES (?, ?, ?, ?)')

  function eachTable(sql: (table: Table, columns: readonly string[]) => string) {
    const prepared = (table: Table) => database.prepare(sql(table, COLUMNS[table]))
    return {
      token: prepared('token'),
      reference: prepared('reference'),
      string: prepared('string'),
      date: prepared('date'),
      quantity: prepared('quantity'),
      uri: prepared('uri'),
    }
  }

  function rowsOf(rid: number, type: string, resource: Resource | undefined): Row[] {
    if (!resource) return []
    const rows: Row[] = []
    for (const entry of indexEntries(resource, baseUrl))
      if (!OWN_COLUMNS.has(entry.parameter))
        rows.push(rowOf(entry, names.parameterId(type, entry.parameter), rid))
    return rows
  }

  return {
    replace(rid, type, before, after) {
      const rows = rowsOf(rid, type, after)
      const kept = before && new Set(rows.map(keyOf))
      for (const row of rowsOf(rid, type, before))
        if (!kept?.delete(keyOf(row))) remove[row.table].run(...row.values)
      for (const row of rows) insert[row.table].run(...row.values)
    },
    place(rid, version, resource) {
      const tid = names.typeId(resource.resourceType)
      for (const patient of patientsOf(resource, baseUrl)) compartment.run(patient, tid, rid, version)
    },
  }
}

function keyOf(row: Row): string {
  return `${row.table}\0${row.values.join('\0')}`
}

function rowOf(entry: IndexEntry, nid: number, rid: number): Row {
  switch (entry.kind) {
    case 'token':
      return { table: 'token', values: [nid, entry.code ?? '', rid, entry.system ?? '', entry.text ?? ''] }
    case 'reference':
      return {
        table: 'reference',
        values: [
          nid,
          entry.id ?? entry.url ?? '',
          entry.type ?? '',
          rid,
          entry.identifierSystem ?? '',
          entry.identifierValue ?? '',
        ],
      }
    case 'string':
      return { table: 'string', values: [nid, entry.normal, rid, entry.exact] }
    case 'date':
      return { table: 'date', values: [nid, rid, entry.low, entry.high] }
    case 'number':
      return { table: 'quantity', values: [nid, rid, entry.low, entry.high, '', '', ''] }
    case 'quantity':
      return {
        table: 'quantity',
        values: [nid, rid, entry.low, entry.high, entry.system ?? '', entry.code ?? '', entry.unit ?? ''],
      }
    case 'uri':
      return { table: 'uri', values: [nid, entry.uri, rid] }
  }
}
