import {
  findPage,
  type KeptRecord,
  type RecordFilter,
  type TrailPosition,
  toAuditEvent,
} from '../../audit/index.ts'
import { LIMITS } from '../limits.ts'
import { type Admin, AdminFailure, type ListPage, type PageRequest, recordAct } from './act.ts'

const PAGE = 500

interface ExportOptions {
  readonly fhirBaseUrl: string
}

/** NDJSON has AuditEvents, CSV the columns of the table. */
export const EXPORT_FORMATS = {
  ndjson: {
    type: 'application/x-ndjson; charset=utf-8',
    head: '',
    format: (record: KeptRecord, options: ExportOptions) =>
      `${JSON.stringify(toAuditEvent(record, options))}\n`,
  },
  csv: { type: 'text/csv; charset=utf-8', head: `${listColumns().join(',')}\r\n`, format: formatCsv },
} as const

export type ExportFormat = keyof typeof EXPORT_FORMATS

/** Lists audit records, newest first. A page may have fewer than `limit`, and others may follow. */
export async function listRecords(
  { store }: Pick<Admin, 'store'>,
  { after, limit, ...filter }: RecordFilter & PageRequest,
): Promise<ListPage<KeptRecord>> {
  const found = await findPage(store, { ...filter, after: readPosition(after), limit: limit + 1 })
  const items = found.records.slice(0, limit)
  const last = found.records.length > limit ? items.at(-1) : found.next
  return { items, next: last && formatPosition(last) }
}

export function formatPosition({ at, id }: TrailPosition): string {
  return `${at}.${id}`
}

export function readPosition(text: string | undefined): TrailPosition | undefined {
  const [, at, id] = /^(\d{1,15})\.(\d{1,15})$/.exec(text ?? '') ?? []
  return at === undefined ? undefined : { at: Number(at), id: Number(id) }
}

let exporting = 0

/** Exports audit records, newest first, in parts, and records the export. */
export async function exportRecords(
  admin: Admin,
  format: ExportFormat,
  { fhirBaseUrl, ...filter }: RecordFilter & ExportOptions,
): Promise<AsyncGenerator<string> | AdminFailure> {
  if (exporting >= LIMITS.exports) return new AdminFailure('unavailable', 'other exports are running')
  await recordAct(admin, `audit export ${format}`, { after: { ...filter } })
  return writeRecords(admin, format, { ...filter, fhirBaseUrl })
}

async function* writeRecords(
  { store }: Pick<Admin, 'store'>,
  format: ExportFormat,
  { fhirBaseUrl, ...filter }: RecordFilter & ExportOptions,
): AsyncGenerator<string> {
  exporting++
  try {
    const { head, format: formatRecord } = EXPORT_FORMATS[format]
    yield head
    let after: TrailPosition | undefined
    for (let left: number = LIMITS.exportedRecords; left > 0; ) {
      const limit = Math.min(PAGE, left)
      const { records, next } = await findPage(store, { ...filter, after, limit })
      yield records.map(record => formatRecord(record, { fhirBaseUrl })).join('')
      left -= records.length
      after = records.length === limit ? records.at(-1) : next
      if (!after) return
    }
  } finally {
    exporting--
  }
}

/** A record as JSON, without the members that have no value. */
export function describeRecord(record: KeptRecord): Readonly<Record<string, unknown>> {
  const values = listColumns().map(name => [name, record[name]] as const)
  return {
    ...Object.fromEntries(values.filter(([, value]) => value !== null)),
    at: new Date(record.at).toISOString(),
    allowed: Boolean(record.allowed),
    ...(record.details !== null && { details: JSON.parse(record.details) }),
  }
}

function listColumns(): readonly (keyof KeptRecord)[] {
  return [
    ...(['id', 'at', 'server', 'kind', 'interaction', 'allowed', 'status', 'method', 'request'] as const),
    ...(['resource_type', 'resource_id', 'patient_id', 'patients', 'client_id', 'subject'] as const),
    ...(['fhir_user', 'decided_by', 'reason', 'launch_id', 'request_id', 'address', 'repeats'] as const),
    'details',
  ]
}

function formatCsv(record: KeptRecord): string {
  const cells = listColumns().map(name =>
    name === 'at' ? new Date(record.at).toISOString() : formatCell(record[name]),
  )
  return `${cells.join(',')}\r\n`
}

/** RFC 4180. A spreadsheet would run a text that begins with one of these characters as a formula. */
function formatCell(value: KeptRecord[keyof KeptRecord]): string {
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? '')
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
