import type { Repository } from '../repository/repository.ts'

/** The types of which there are resources, deleted ones too, on the whole server or in a patient's compartment. */
export function findStoredTypes({ database }: Repository, compartment?: string): readonly string[] {
  const [from, values] =
    compartment === undefined
      ? ['resource WHERE tid = nid', []]
      : ['compartment WHERE patient = ? AND tid = nid', [compartment]]
  const rows = database.rows(
    `SELECT type FROM name WHERE code = '' AND EXISTS (SELECT 1 FROM ${from}) ORDER BY type`,
    values,
  )
  return rows.map(([type]) => String(type))
}
