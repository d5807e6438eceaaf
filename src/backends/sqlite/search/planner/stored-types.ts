import type { AccessFilter } from '../../../../smart/index.ts'
import type { SearchScope } from './search-scope.ts'
import { isOwnPatient } from './select-current.ts'
import { list, name, type Sql, sql } from './sql.ts'

/**
 * Of some types, those that a search has to read. Types of which the caller's patients have no resource, current or deleted,
 * are left out, and so are types of which the whole server has none.
 */
export function findStoredTypes(scope: SearchScope, types: readonly string[]): readonly string[] {
  const patients = new Map(types.map(type => [type, findOwners(scope, type)]))
  const stored = new Map([...new Set(patients.values())].map(it => [it, findTypesOf(scope, it)]))
  return types.filter(type => stored.get(patients.get(type))?.has(type))
}

/** Whether all constraints of a filter name patients. */
export function isOfPatients(filter: AccessFilter): boolean {
  return filter !== 'everything' && filter.every(({ patient }) => patient !== undefined)
}

/** JSON of the patients in whose compartments all resources are that the caller may find; undefined if they may be of any. */
function findOwners(scope: SearchScope, type: string): string | undefined {
  const { compartment } = scope
  const filter = scope.filter(type)
  if (filter !== 'everything' && isOfPatients(filter))
    return JSON.stringify([...new Set(filter.flatMap(({ patient }) => patient ?? []))])
  const isOwn =
    compartment !== undefined && (filter === 'everything' || isOwnPatient(scope, type, compartment))
  return isOwn ? JSON.stringify([compartment]) : undefined
}

function findTypesOf({ database }: SearchScope, patients: string | undefined): ReadonlySet<string> {
  const { text, values } =
    sql`SELECT type FROM name WHERE code = '' AND EXISTS (${selectOf(patients)}) ORDER BY type`
  return new Set(database.rows(text, values).map(([type]) => String(type)))
}

function selectOf(patients: string | undefined): Sql {
  if (patients === undefined) return name('SELECT 1 FROM resource WHERE tid = nid')
  // SQLite reads the whole table for an empty list.
  const ids = JSON.parse(patients)
  return sql`SELECT 1 FROM compartment WHERE patient IN (${list(ids.length === 0 ? [null] : ids)}) AND tid = nid`
}
