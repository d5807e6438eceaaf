import { openRepository, type Repository } from '../../src/backends/sqlite/repository/repository.ts'
import { VALUE_COLUMNS, VALUE_TABLES } from '../../src/backends/sqlite/repository/schema.ts'

/** The Observations of the large record, and those that are written one by one; the others are copies of their rows. */
const [OBSERVATIONS, WRITTEN] = [100_000, 1_000]

/** A patient with 100,000 Observations, in the file of an embedded server that may be running. */
export function loadLargeRecord(file: string, baseUrl: string): void {
  const repository = openRepository({ file, baseUrl })
  repository.load([{ resourceType: 'Patient', id: 'large', active: true }])
  const first = findLast(repository) + 1
  repository.load(Array.from({ length: WRITTEN }, (_, at) => createObservation(at)))
  repository.database.exec('PRAGMA cache_size = -200000')
  repository.database.transaction(() => {
    for (let by = WRITTEN; by < OBSERVATIONS; by += WRITTEN) copyRows(repository, first, by)
  })
  repository.close()
}

function createObservation(at: number): object {
  const coding = (code: string) => ({ coding: [{ system: 'urn:x', code }] })
  return {
    resourceType: 'Observation',
    id: `large-${at}`,
    status: 'final',
    subject: { reference: 'Patient/large' },
    category: [coding(`c${at % 40}`)],
    code: coding(`o${at % 100}`),
    effectiveDateTime: new Date(1.5e12 + at * 60_000).toISOString(),
    valueQuantity: { value: at / 10, unit: 'mg' },
  }
}

function findLast({ database }: Repository): number {
  return Number(database.rows('SELECT max(rid) FROM resource', [])[0]?.[0])
}

/** The columns of each table that are copied. */
const COPIED = [
  ['resource', 'rid, tid, id, version, updated, deleted, content'],
  ['version', 'rid, tid, version, updated, method, content'],
  ['compartment', 'patient, tid, rid, version'],
  ...VALUE_TABLES.map(table => [table, `rid, nid, ${VALUE_COLUMNS[table].join(', ')}`] as const),
] as const

/** Copies the resources from `first` on under other numbers and ids. */
function copyRows({ database }: Repository, first: number, by: number): void {
  for (const [table, columns] of COPIED) {
    const numbered = columns.replace('rid', `rid + ${by}`)
    const values = table === 'resource' ? numbered.replace(' id,', ` id || '-${by}',`) : numbered
    database.exec(`INSERT INTO ${table} (${columns}) SELECT ${values} FROM ${table}
      WHERE rid >= ${first} AND rid < ${first + WRITTEN}`)
  }
}
