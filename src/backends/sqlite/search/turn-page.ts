import type { Cursor } from '../../../fhir-api/index.ts'
import type { SqlValue } from '../repository/database.ts'

/** Only cursors that were sealed here are opened again. */
export function parseCursor(cursor: Cursor | undefined): readonly SqlValue[] | undefined {
  return Array.isArray(cursor) ? cursor : undefined
}
