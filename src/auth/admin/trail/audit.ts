import { setImmediate as yieldTurn } from 'node:timers/promises'
import { Type } from 'typebox'
import {
  type AuditEventOptions,
  findPage,
  type KeptRecord,
  openEventIds,
  type RecordFilter,
  type TrailPosition,
  toAuditEvent,
} from '../../../audit/index.ts'
import { isFailure } from '../../../core/index.ts'
import { Members, StreamedText } from '../../../endpoint/index.ts'
import type { Resource } from '../../../fhir/index.ts'
import { cutPage, formatPosition, parseNumberedPosition } from '../../../store/index.ts'
import { CSV_TYPE, formatCellText, formatCsvRow } from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import {
  type Admin,
  type AdminFailure,
  type AdminOperation,
  failAdmin,
  type ListPage,
  type PageRequest,
  recordAction,
} from '../base/action.ts'
import { readCsv } from '../subject/columns.ts'
import { defineEndpoint } from '../subject/endpoint.ts'
import { describeFilters } from '../subject/filters.ts'
import { type Opened, openList, refuseUnknown } from '../subject/list.ts'
import { findUsernames } from './audit-who.ts'
import { RECORD_MEMBERS } from './columns.ts'
import { describeMeant, TRAIL_FILTERS, toRecordFilter } from './filters.ts'

const EXPORT_RECORDS: AdminOperation = { name: 'audit export', signIn: 'never asks', isForAuditors: true }

/** Records that are read and written without a pause. */
const PAGE = 100

type ExportOptions = AuditEventOptions

type Username = string | undefined

const { heads, readRow } = readCsv(RECORD_MEMBERS)

/** The columns of an export as CSV. */
export const COLUMNS: readonly string[] = heads

/** NDJSON has AuditEvents, CSV the columns of the table and the username. */
export const EXPORT_FORMATS = {
  ndjson: {
    type: 'application/x-ndjson; charset=utf-8',
    head: '',
    format: (record: KeptRecord, username: Username, options: ExportOptions) =>
      `${JSON.stringify(addUsername(toAuditEvent(record, options), record, username))}\n`,
    formatNote: (text: string) =>
      `${JSON.stringify({ resourceType: 'OperationOutcome', issue: [{ severity: 'warning', code: 'incomplete', details: { text } }] })}\n`,
  },
  csv: {
    type: CSV_TYPE,
    head: `${COLUMNS.join(',')}\r\n`,
    format: (record: KeptRecord, username: Username) => formatCsvRow(readRow({ record, username })),
    formatNote: (text: string) => formatCsvRow([text]),
  },
} as const

export type ExportFormat = keyof typeof EXPORT_FORMATS

/** How often a page that is not full looks further. */
const LOOKED = 25

/** Lists audit records, newest first. A page may have fewer than `limit`, and others may follow. */
export async function listRecords(
  { store }: Pick<Admin, 'store'>,
  { after, limit, ...filter }: RecordFilter & PageRequest,
): Promise<ListPage<KeptRecord>> {
  const records: KeptRecord[] = []
  let next: TrailPosition | undefined = parseNumberedPosition(after)
  let looked = 0
  do {
    const found = await findPage(store, { ...filter, after: next, limit: limit + 1 - records.length })
    records.push(...found.records)
    next = found.next
    await yieldTurn()
  } while (next && records.length <= limit && ++looked < LOOKED)
  const { shown, last = next } = cutPage(records, limit)
  return { items: shown, next: last && formatPosition(last) }
}

let exporting = 0

/** Exports audit records, newest first, in parts, and records the export. */
export async function exportRecords(
  admin: Admin,
  format: ExportFormat,
  {
    fhirBaseUrl,
    most = LIMITS.exportedRecords,
    ...opened
  }: Opened & Pick<ExportOptions, 'fhirBaseUrl'> & { readonly most?: number },
): Promise<AsyncGenerator<string> | AdminFailure> {
  if (exporting >= LIMITS.exports) return failAdmin('exports-running')
  const filter = toRecordFilter(opened.meant)
  const after = describeMeant(opened)
  const refused = await recordAction(admin, { operation: EXPORT_RECORDS, target: format, after })
  if (refused) return refused
  const first = await listRecords(admin, { ...filter, limit: 1 })
  const fault = refuseUnknown(opened, { ...first, next: undefined })
  if (fault) return fault
  return writeRecords(admin, format, filter, { fhirBaseUrl, ids: await openEventIds(admin.store), most })
}

async function* writeRecords(
  { store }: Pick<Admin, 'store'>,
  format: ExportFormat,
  filter: RecordFilter,
  { most, ...options }: ExportOptions & { readonly most: number },
): AsyncGenerator<string> {
  exporting++
  try {
    const { head, format: formatRecord, formatNote } = EXPORT_FORMATS[format]
    yield head
    let after: TrailPosition | undefined
    for (let left = most; left > 0; ) {
      const limit = Math.min(PAGE, left)
      const { records, next } = await findPage(store, { ...filter, after, limit })
      const usernames = await findUsernames(store, records)
      yield records.map(record => formatRecord(record, usernames.get(record.subject ?? ''), options)).join('')
      left -= records.length
      after = records.length === limit ? records.at(-1) : next
      if (!after) return
      // SQLite answers at once: without a pause, the export of a long trail would block every other request.
      await yieldTurn()
    }
    const [older] = after ? (await findPage(store, { ...filter, after, limit: 1 })).records : []
    if (older) yield formatNote(describeCut(most, older))
  } finally {
    exporting--
  }
}

/** The beginning of the last line of a file that is not complete. */
export const INCOMPLETE = 'Incomplete: '

function describeCut(most: number, { at }: KeptRecord): string {
  const day = new Date(at).toISOString().slice(0, 10)
  return `${INCOMPLETE}this file has the newest ${most.toLocaleString('en')} records. For older ones, export again with ${day} as the last day, or read them by the administration API.`
}

/** The cells of a record, as a reader of the CSV gets them, by column. */
export function formatCells(record: KeptRecord): Readonly<Record<string, string>> {
  const cells = readRow({ record, username: undefined })
  return Object.fromEntries(cells.map((value, at) => [COLUMNS[at], formatCellText(value)]))
}

/** FHIR has a place for the name that somebody signs in with: `agent.altId`. */
function addUsername(event: Resource, { subject }: KeptRecord, username: Username): Resource {
  if (username === undefined || !Array.isArray(event.agent)) return event
  const agent = event.agent.map(one =>
    one.who?.identifier?.value === subject ? { ...one, altId: username } : one,
  )
  return { ...event, agent }
}

/** Downloads or sends the filtered records, and records the export. */
export const exportEndpoint = defineEndpoint({
  method: 'GET',
  path: '/audit/export',
  title: 'Audit records as a file, newest first',
  description: `At most ${LIMITS.exportedRecords} records: choose times for more. NDJSON has FHIR AuditEvents.`,
  query: Members({
    ...describeFilters(TRAIL_FILTERS).properties,
    format: Type.Union([Type.Literal('ndjson'), Type.Literal('csv')], { default: 'ndjson' }),
  }),
  streams: Object.values(EXPORT_FORMATS).map(({ type }) => type),
  operation: EXPORT_RECORDS,
  async handle({ admin, context, query: { format, ...query } }) {
    const opened = await openList({ filters: TRAIL_FILTERS }, admin, query)
    if (isFailure(opened)) return opened
    const parts = await exportRecords(admin, format, { ...opened, fhirBaseUrl: context.settings.fhirBaseUrl })
    return isFailure(parts) ? parts : new StreamedText(EXPORT_FORMATS[format].type, parts)
  },
})
