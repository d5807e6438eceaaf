import { type Cursor, type Paged, resumePage } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../call.ts'
import { isProblem, type Problem } from '../problem.ts'
import type { SqlValue } from '../repository/database.ts'

/** A search or history as it was first asked, and where it goes on. */
export interface Turned<I extends Paged> {
  readonly call: Call<I>
  readonly after: readonly SqlValue[] | undefined
}

/** Opens the page that a link names. */
export function turnPage<I extends Paged>(
  context: Context,
  call: Call<I>,
  path: string,
): Turned<I> | Problem {
  const resumed = resumePage(context, call, path)
  if (isProblem(resumed)) return resumed
  return { call: resumed.request, after: parseCursor(resumed.cursor) }
}

/** Only cursors that were sealed here are opened again. */
export function parseCursor(cursor: Cursor | undefined): readonly SqlValue[] | undefined {
  return Array.isArray(cursor) ? cursor : undefined
}
