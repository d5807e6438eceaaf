import { isRecord } from '../../../fhir/index.ts'
import { type Cursor, isFailure, type Paged, resumePage } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import type { Spot } from './fetch-page.ts'

/** A search or history as it was first asked, and where it goes on. */
export interface Turned<I extends Paged> {
  readonly call: Call<I>
  readonly spot: Spot | undefined
}

/** Opens the page that a link names. */
export function turnPage<I extends Paged>(
  context: Context,
  call: Call<I>,
  path: string,
): Turned<I> | Problem {
  const resumed = resumePage(context, call, path)
  return isFailure(resumed) ? resumed : { call: resumed.request, spot: parseCursor(resumed.cursor) }
}

/** Only cursors that were sealed here are opened again. */
export function parseCursor(cursor: Cursor | undefined): Spot | undefined {
  if (!isRecord(cursor) || typeof cursor.link !== 'string') return undefined
  const { link, skip, shown } = cursor
  return {
    link,
    ...(typeof skip === 'number' && { skip }),
    ...(Array.isArray(shown) && { shown }),
  }
}
