import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { findPage, type KeptRecord, type RecordFilter, toAuditEvent } from '../../../audit/index.ts'
import { auditEvent } from '../../audit.ts'
import type { AuthContext } from '../../context.ts'
import { buildQuery, readView, type View } from './audit-view.ts'
import type { AdminRequest } from './gate.ts'

export const MOST_EXPORTED = 100_000
const PAGE = 500

const FORMATS = {
  ndjson: {
    type: 'application/x-ndjson; charset=utf-8',
    head: '',
    format: (record: KeptRecord, { fhirBaseUrl }: AuthContext['settings']) =>
      `${JSON.stringify(toAuditEvent(record, { fhirBaseUrl }))}\n`,
  },
  csv: { type: 'text/csv; charset=utf-8', head: `${listColumns().join(',')}\r\n`, format: formatCsv },
} as const

/** The export itself is an event of the trail. */
export async function sendExport(request: AdminRequest, format: keyof typeof FORMATS): Promise<FastifyReply> {
  const { context, reply, login, form } = request
  const view = readView(form)
  const reason = `Exported the audit trail as ${format}: ${buildQuery(view) || 'all records'}`
  await auditEvent(context, request.request, {
    kind: 'admin',
    status: 200,
    clinician: login.clinician,
    reason,
  })
  const { type } = FORMATS[format]
  return reply
    .type(type)
    .header('content-disposition', `attachment; filename="audit.${format}"`)
    .send(Readable.from(exportRecords(context, view.filter, format)))
}

async function* exportRecords(
  { store, settings }: AuthContext,
  filter: RecordFilter,
  format: keyof typeof FORMATS,
) {
  const { head, format: formatRecord } = FORMATS[format]
  yield head
  let after: View['after']
  for (let left = MOST_EXPORTED; left > 0; ) {
    const limit = Math.min(PAGE, left)
    const { records, next } = await findPage(store, { ...filter, after, limit })
    yield records.map(record => formatRecord(record, settings)).join('')
    left -= records.length
    after = records.length === limit ? records.at(-1) : next
    if (!after) return
  }
}

function listColumns(): readonly (keyof KeptRecord)[] {
  return [
    ...(['id', 'at', 'server', 'kind', 'interaction', 'allowed', 'status', 'method', 'request'] as const),
    ...(['resource_type', 'resource_id', 'patient_id', 'patients', 'client_id', 'subject'] as const),
    ...(['fhir_user', 'decided_by', 'reason', 'launch_id', 'request_id', 'address', 'repeats'] as const),
  ]
}

function formatCsv(record: KeptRecord): string {
  const cells = listColumns().map(name =>
    name === 'at' ? new Date(record.at).toISOString() : formatCell(record[name]),
  )
  return `${cells.join(',')}\r\n`
}

/** RFC 4180. A spreadsheet would run a text that begins with one of these signs as a formula. */
function formatCell(value: KeptRecord[keyof KeptRecord]): string {
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? '')
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
