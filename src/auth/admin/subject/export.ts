import { setImmediate as yieldTurn } from 'node:timers/promises'
import { formatCsvRow } from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { type Admin, type AdminFailure, recordAction } from '../base/action.ts'
import { readCsv } from './columns.ts'
import type { Meant } from './filters.ts'
import { type List, type Opened, refuseUnknown } from './list.ts'

/** The rows of a list in parts: those of its pages, and others. */
export async function* readAll<Row>(
  list: List<Row>,
  admin: Admin,
  meant: Meant,
): AsyncGenerator<readonly Row[]> {
  let after: string | undefined
  do {
    const page = await list.read(admin, { ...meant, after, limit: LIMITS.adminPage })
    yield page.items
    after = page.next
    await yieldTurn()
  } while (after !== undefined)
}

/** Exports a list as CSV, in parts, and records the export. */
export async function exportList<Row>(
  list: List<Row>,
  { operation, target }: Pick<NonNullable<List<Row>['csv']>, 'operation' | 'target'>,
  admin: Admin,
  opened: Opened,
): Promise<AsyncGenerator<string> | AdminFailure> {
  const first = opened.unknown.length > 0 ? await list.read(admin, { ...opened.meant, limit: 1 }) : undefined
  const fault = first && refuseUnknown(opened, first)
  if (fault) return fault
  const { meant } = opened
  const refused = await recordAction(admin, { operation, ...(target && { target }), after: meant })
  return refused ?? writeList(list, admin, meant)
}

async function* writeList<Row>(list: List<Row>, admin: Admin, meant: Meant): AsyncGenerator<string> {
  const { heads, readRow } = readCsv(list.columns)
  const format = (rows: readonly Row[]) => rows.map(row => formatCsvRow(readRow(row))).join('')
  yield formatCsvRow(heads)
  for await (const rows of readAll(list, admin, meant)) yield format(rows)
  if (list.others) yield format(await list.others.read(admin, meant))
}
