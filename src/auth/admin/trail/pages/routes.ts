import type { FastifyReply } from 'fastify'
import { type KeptRecord, openEventIds, toAuditEvent } from '../../../../audit/index.ts'
import { readFiledPatients } from '../../../../audit-record/index.ts'
import { isFailure } from '../../../../core/index.ts'
import { type Choice, type Html, html, renderAlert, renderEmptyState } from '../../../../web/ui/index.ts'
import { LIMITS } from '../../../base/limits.ts'
import { paths } from '../../../base/paths.ts'
import { renderAuditOff } from '../../../pages/parts/audit-result.ts'
import { findNames, type KnownNames } from '../../../pages/parts/explain/describe.ts'
import { type Admin, type AdminFailure, recordAction } from '../../base/action.ts'
import type { Area } from '../../subject/area.ts'
import { readCells } from '../../subject/columns.ts'
import type { Filter } from '../../subject/list.ts'
import { renderFilter, sendWrongFilters } from '../../subject/list-page.ts'
import { type FilterChoices, findChoices } from '../../subject/page/filters.ts'
import {
  findPatientNames,
  isMistyped,
  type MeantPatients,
  namePatientField,
  type PatientNames,
  renderMeantPatients,
} from '../../subject/page/find-patients.ts'
import type { AdminRequest, AdminRoute } from '../../subject/page/route.ts'
import { LISTED, renderAdminPage, renderLink, renderTable } from '../../subject/page/shell.ts'
import {
  auditEndpoints,
  EXPORT_FORMATS,
  type ExportFormat,
  exportRecords,
  LIST_RECORDS,
  listRecords,
  SHOW_RECORD,
} from '../audit.ts'
import { type AccessSummary, findWorkstations, summarizeAccess } from '../audit-summary.ts'
import { CHECK_FILE, checkFileInTurn } from '../check-file.ts'
import { listPatients, RECORD_CELLS } from '../columns.ts'
import { describeFilter, describeUnknown, PAGE_FILTERS } from '../filters.ts'
import { findVerification, startVerification, VERIFY_TRAIL, verificationEndpoints } from '../verification.ts'
import { findUsableGrant, renderRecordPage } from './audit-record.ts'
import { renderSummaries } from './audit-summary.ts'
import { renderVerification } from './audit-verification.ts'
import { type AuditView, buildAuditQuery, readAuditView } from './view.ts'

const PAGE = { section: 'audit', title: 'Audit' } as const

/** `/admin/audit`: review of the audit trail, and its export. */
const auditRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/audit',
    async handle(request) {
      const { context, form } = request
      const view = await readAuditView(request)
      if (isFailure(view)) return sendWrongFilters(request, PAGE, view)
      const { meant } = view
      const refused = await recordAction(request.admin, {
        operation: LIST_RECORDS,
        after: describeFilter(view),
      })
      if (refused) return refused
      const { items: records, next: older } = await listRecords(request.admin, {
        ...view.filter,
        after: form.get('after'),
        limit: LISTED,
      })
      const { kind } = view.fields
      const hasSummary = meant && (kind === undefined || kind === 'fhir') && form.get('after') === undefined
      const summaries = hasSummary ? await summarizeEach(request.admin, view.filter, meant) : NO_SUMMARIES
      const read = [...summaries.values()].flatMap(({ accesses }) => accesses.map(({ record }) => record))
      const named = [...records, ...read]
      const [names, choices, patients] = await Promise.all([
        findNames(context.store, named),
        findChoices(context),
        findPatientNames(
          request,
          'administration-names',
          [...summaries.keys(), ...records.flatMap(record => listPatients(record).shown)],
          meant,
        ),
      ])
      const isChanged = (await findVerification(request.admin)).state === 'changed'
      return renderAuditPage(request, {
        isChanged,
        view,
        records,
        older,
        names,
        choices,
        summaries,
        patients,
      })
    },
  },
  {
    method: 'GET',
    path: '/audit/:id',
    async handle(request) {
      const { context, reply, params } = request
      const id = /^\d{1,15}$/.test(params.id ?? '') ? Number(params.id) : -1
      const [record] = (await listRecords(request.admin, { ids: [id], limit: 1 })).items
      if (!record) return reply.sendProblem({ kind: 'not-found' })
      const refused = await recordAction(request.admin, { operation: SHOW_RECORD, target: String(id) })
      if (refused) return refused
      const { fhirBaseUrl } = context.settings
      const event = toAuditEvent(record, { fhirBaseUrl, ids: await openEventIds(context.store) })
      const names = await findNames(context.store, [record])
      const patients = await findPatientNames(
        request,
        'administration-names',
        readFiledPatients(record).patients,
      )
      const grant = await findUsableGrant(request, record)
      const workstation = (await findWorkstations(context.store, [record])).get(record.launch_id)
      return renderRecordPage(request, { record, names, grant, workstation, patients }, event)
    },
  },
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

export const TRAIL_AREA: Area = {
  routes: auditRoutes,
  endpoints: [...auditEndpoints, ...verificationEndpoints],
  operations: [SHOW_RECORD, CHECK_FILE],
}

/** Downloads the filtered records, and records the export. */
async function sendExport(request: AdminRequest, format: ExportFormat): Promise<FastifyReply | AdminFailure> {
  const { admin, context, reply } = request
  const { fhirBaseUrl } = context.settings
  const view = await readAuditView(request)
  const parts = isFailure(view) ? view : await exportRecords(admin, format, { ...view, fhirBaseUrl })
  if (isFailure(parts)) return parts
  return reply.sendDownload(`audit.${format}`, EXPORT_FORMATS[format].type, parts)
}

const NO_SUMMARIES: ReadonlyMap<string, AccessSummary> = new Map()

/** Patients who are summarized on one page. Among more, the administrator chooses one first. */
const SUMMARIZED_PATIENTS = 5

async function summarizeEach(
  admin: Admin,
  filter: AuditView['filter'],
  { ids, found }: MeantPatients,
): Promise<ReadonlyMap<string, AccessSummary>> {
  if (found.length > SUMMARIZED_PATIENTS) return NO_SUMMARIES
  const summaries = new Map<string, AccessSummary>()
  for (const id of ids) summaries.set(id, await summarizeAccess(admin, { ...filter, patients: [id] }))
  return summaries
}

interface AuditPage {
  /** Whether the last verification found that the trail was changed. */
  readonly isChanged: boolean
  /** By patient. */
  readonly summaries: ReadonlyMap<string, AccessSummary>
  readonly view: AuditView
  readonly records: readonly KeptRecord[]
  /** The position of older records. */
  readonly older: string | undefined
  readonly names: KnownNames
  readonly choices: FilterChoices
  readonly patients: PatientNames
}

const { heads, renderRow } = readCells(RECORD_CELLS)

function renderAuditPage(request: AdminRequest, page: AuditPage): Html {
  const { view, records, older, summaries, isChanged } = page
  const { meant, fields } = view
  const rows = records.map(record => renderRow({ ...page, record }))
  return renderAdminPage(
    request,
    {
      ...PAGE,
      lead: 'Events with their user, app, patient and result, newest first.',
      actions: html`${renderLink('/audit/verify', 'Verify', 'btn btn--quiet btn--small')}${renderLink(`/audit/export.ndjson${buildAuditQuery(fields)}`, 'Export NDJSON', 'btn btn--quiet btn--small')}${renderLink(`/audit/export.csv${buildAuditQuery(fields)}`, 'Export CSV', 'btn btn--quiet btn--small')}`,
    },
    html`${isChanged && renderAlert('The audit trail was changed.', html`The last verification found it: do not rely on these records. ${renderLink('/audit/verify', 'Show what it found')}`, 'bad')}
${renderFilters(request, page)}
${meant && renderMeantPatients(meant, patient => `/audit${buildAuditQuery({ ...fields, patient })}`)}
${meant && meant.found.length > SUMMARIZED_PATIENTS && html`<p>Choose one of these patients to see who got data.</p>`}
${renderSummaries(summaries, page)}
${records.length === 0 ? renderNone(request, page) : renderTable('Audit records, newest first', heads, rows)}
${older && html`<p class="actions after">${renderLink(`/audit${buildAuditQuery(fields, older)}`, 'Show older records', 'btn btn--quiet')}</p>`}
<p class="small muted after">An export has the filtered records, at most ${LIMITS.exportedRecords.toLocaleString('en')}. NDJSON has FHIR AuditEvents.</p>`,
  )
}

/** A page reads a bounded number of records, so it may find none although older ones match. */
function renderNone({ context }: AdminRequest, { older, view: { meant, unknown } }: AuditPage): Html {
  if (!context.settings.audit.kept) return html`<div class="card">${renderAuditOff()}</div>`
  if (unknown.length > 0 && !older)
    return renderAlert(
      'Unknown user or app.',
      `${describeUnknown(unknown).replace(/^n/, 'N')}. Check the spelling: the trail may have records under another name or id.`,
      'warn',
    )
  if (meant?.found.length === 0 && meant.fault !== undefined && !older)
    return isMistyped(meant)
      ? renderAlert(
          'Unknown patient.',
          `${meant.fault} Check the spelling: the trail may have records under another name or id.`,
          'warn',
        )
      : renderAlert(
          'Not looked up.',
          `${meant.fault} The trail may have records of the patient all the same.`,
          'warn',
        )
  return html`<div class="card">${renderEmptyState(
    older
      ? { title: 'No match among the newest records', text: 'Older records may match.' }
      : { title: 'No matching records', text: 'No record of the audit trail matches these filters.' },
  )}</div>`
}

function renderFilters(request: AdminRequest, { view: { fields }, choices }: AuditPage): Html {
  const set = Object.keys(fields).length
  const suggested: Readonly<Record<string, readonly Choice[]>> = {
    user: choices.users,
    app: choices.apps,
  }
  const labels: Readonly<Record<string, string>> = { patient: namePatientField(request, 'audit-search') }
  return html`<details class="more filters"><summary>Filters${set > 0 && `: ${set} set`}</summary><form class="narrow narrow__form" method="get" action="${paths.admin}/audit" role="search" aria-label="Audit records">
${Object.entries<Filter>(PAGE_FILTERS).map(([key, { name = key, label = '', ...filter }]) =>
  renderFilter(name, { ...filter, label: labels[name] ?? label }, fields[name] ?? '', suggested[name]),
)}
<p class="narrow__act"><button class="btn btn--small">Show</button> ${renderLink('/audit', 'Show all', 'btn btn--quiet btn--small')}</p>
</form></details>`
}
