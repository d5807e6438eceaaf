import type { FastifyReply } from 'fastify'
import { openEventIds, toAuditEvent } from '../../../audit/index.ts'
import { readFiledPatients } from '../../../audit-record/index.ts'
import { isFailure } from '../../../core/index.ts'
import { html } from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { findNames } from '../../pages/parts/explain/describe.ts'
import { findGrant } from '../access/grants.ts'
import { type AdminFailure, type AdminOperation, failAdmin, recordAction } from '../base/action.ts'
import { defineArea } from '../subject/area.ts'
import { openPage } from '../subject/list-page.ts'
import { findPatientNames } from '../subject/page/find-patients.ts'
import type { AdminRequest, AdminRoute } from '../subject/page/route.ts'
import { renderButton } from '../subject/page/shell.ts'
import type { Subject } from '../subject/subject.ts'
import { EXPORT_FORMATS, type ExportFormat, exportEndpoint, exportRecords, listRecords } from './audit.ts'
import { findWorkstations } from './audit-summary.ts'
import { CHECK_FILE, checkFileInTurn } from './check-file.ts'
import { RECORD_CELLS, type ShownRecord } from './columns.ts'
import { renderDetails } from './details.ts'
import { renderVerification } from './pages/audit-verification.ts'
import { RECORDS } from './records.ts'
import { findVerification, startVerification, VERIFY_TRAIL, verificationEndpoints } from './verification.ts'

/** The verification of the trail, and its export. */
const auditRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/audit/verify',
    operation: VERIFY_TRAIL,
    handle: async request => renderVerification(request, await findVerification(request.admin)),
  },
  {
    method: 'POST',
    path: '/audit/verify',
    operation: VERIFY_TRAIL,
    async handle(request) {
      const head = request.form.get('head')?.trim() || undefined
      const report = await startVerification(request.admin, request.context.sealer, { head })
      if (!isFailure(report)) return '/audit/verify'
      if (report.code !== 'invalid') return report
      const fault = { head: head ?? '', text: report.sentence }
      return request.reply.sendPage(
        renderVerification(request, await findVerification(request.admin), { fault }),
        { status: 400 },
      )
    },
  },
  { method: 'GET', path: '/audit/check-file', handle: async () => '/audit/verify' },
  {
    method: 'POST',
    path: '/audit/check-file',
    operation: CHECK_FILE,
    bodyBytes: LIMITS.exportedFileBytes,
    async handle(request) {
      const { admin, context, form, reply } = request
      const checked = await checkFileInTurn(admin, [form.get('file') ?? ''], context.settings)
      const report = await findVerification(admin)
      return reply.sendPage(renderVerification(request, report, { checked }), {
        status: isFailure(checked) ? (checked.code === 'unavailable' ? 503 : 422) : 200,
      })
    },
  },
  { method: 'GET', path: '/audit/export.ndjson', handle: request => sendExport(request, 'ndjson') },
  { method: 'GET', path: '/audit/export.csv', handle: request => sendExport(request, 'csv') },
]

/** Downloads the filtered records, and records the export. */
async function sendExport(request: AdminRequest, format: ExportFormat): Promise<FastifyReply | AdminFailure> {
  const { admin, context, reply } = request
  const { fhirBaseUrl } = context.settings
  const opened = await openPage(request, RECORDS)
  const parts = isFailure(opened) ? opened : await exportRecords(admin, format, { ...opened, fhirBaseUrl })
  if (isFailure(parts)) return parts
  return reply.sendDownload(`audit.${format}`, EXPORT_FORMATS[format].type, parts)
}

const SHOW_RECORD: AdminOperation = { name: 'audit show', signIn: 'never asks', isForAuditors: true }

/** The audit trail. */
const RECORD: Subject<ShownRecord, string, never> = {
  name: 'audit',
  lists: [RECORDS],
  operations: {},
  toTarget: id => id,
  async find({ admin }, id) {
    const ids = /^\d{1,15}$/.test(id) ? [Number(id)] : []
    const [record] = ids.length > 0 ? (await listRecords(admin, { ids, limit: 1 })).items : []
    return record ? { record } : failAdmin('record-unknown')
  },
  pages: {
    section: 'audit',
    path: '/audit/:id',
    async prepare(request, { record }) {
      const { admin, context } = request
      const refused = await recordAction(admin, { operation: SHOW_RECORD, target: String(record.id) })
      if (refused) return refused
      const { patients } = readFiledPatients(record)
      const grant = record.launch_id === null ? undefined : await findGrant(admin, record.launch_id)
      return {
        record,
        names: await findNames(context.store, [record]),
        patients: await findPatientNames(request, 'administration-names', patients),
        grant: isFailure(grant) ? undefined : grant,
        workstation: (await findWorkstations(context.store, [record])).get(record.launch_id),
      }
    },
    details: {
      columns: RECORD_CELLS,
      title: ({ record }) => `Record ${record.id}`,
      actions: renderButton('/audit', 'All records'),
      async more({ context }, { record }) {
        const { fhirBaseUrl } = context.settings
        const event = toAuditEvent(record, { fhirBaseUrl, ids: await openEventIds(context.store) })
        return {
          below: html`${record.details !== null && renderDetails(JSON.parse(record.details))}
<details class="more after"><summary>As a FHIR AuditEvent</summary><pre class="card card__body">${JSON.stringify(event, null, 2)}</pre></details>`,
        }
      },
    },
    show: () => '/audit',
  },
}

export const TRAIL_AREA = defineArea(RECORD, {
  routes: auditRoutes,
  endpoints: [exportEndpoint, ...verificationEndpoints],
  operations: [SHOW_RECORD, CHECK_FILE],
})
