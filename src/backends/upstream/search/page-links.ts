import { isRecord } from '../../../fhir/index.ts'
import { type Cursor, createPages, type Pages } from '../../../fhir-api/index.ts'
import type { Sealer } from '../../../store/index.ts'
import type { PageCursor } from './fetch-page.ts'

/** The name of the parameter that carries a page; another one than an upstream of ours has. */
export const PAGE = '_gateway-page'

/** Gateways that share a secret share their links. */
export function openPages(sealer: Sealer): Pages {
  return createPages(sealer, PAGE, 'paging link of the gateway')
}

/** Only cursors that were sealed here are opened again. */
export function parseCursor(cursor: Cursor | undefined): PageCursor | undefined {
  if (!isRecord(cursor) || typeof cursor.link !== 'string') return undefined
  const { link, skip, shown } = cursor
  return {
    link,
    ...(typeof skip === 'number' && { skip }),
    ...(Array.isArray(shown) && { shown }),
  }
}
