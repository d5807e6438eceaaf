import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import {
  type AuditKind,
  formatRepeats,
  type KeptRecord,
  openEventIds,
  toAuditEvent,
} from '../../../audit/index.ts'
import { readFiledPatients, type TargetType } from '../../../audit-record/index.ts'
import { findOwn, HOW, isFailure } from '../../../core/index.ts'
import { PORTAL_CLIENT } from '../../../smart/index.ts'
import {
  formatName,
  type Html,
  html,
  renderAlert,
  renderBadge,
  renderDateTime,
  renderEmptyState,
  renderField,
  renderMoment,
} from '../../../web/index.ts'
import { ADMINISTRATION_NOTE } from '../../base/fhir-reader.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { ACCESS_KINDS } from '../../pages/access-log/visits.ts'
import { describeApp, findNames, type Names } from '../../pages/activity/describe.ts'
import { renderResult } from '../../pages/activity/events.ts'
import { renderAuditOff } from '../../pages/activity/page.ts'
import { type AdminFailure, recordAction } from '../action.ts'
import {
  type AuditView,
  buildAuditQuery,
  describeFilter,
  describeUnknown,
  EXPORT_FORMATS,
  type ExportFormat,
  exportRecords,
  LIST_RECORDS,
  listRecords,
  readAuditView,
  SHOW_RECORD,
} from '../audit.ts'
import {
  type Access,
  type AccessSummary,
  type AccessUse,
  findWorkstations,
  summarizeAccess,
} from '../audit-summary.ts'
import { CHECK_FILE, checkFileInTurn, type FileCheck } from '../check-file.ts'
import { findGrant, type GrantDescription } from '../grants.ts'
import {
  findVerification,
  startVerification,
  VERIFY_TRAIL,
  type VerificationReport,
} from '../verification.ts'
import { renderDetails } from './details.ts'
import { type Choice, type Choices, findChoices, renderInput, renderSelect } from './filters.ts'
import {
  findMeantPatients,
  findPatientNames,
  type MeantPatients,
  type PatientNames,
  renderMeantPatients,
  renderPatient,
} from './find-patients.ts'
import type { AdminRequest, AdminRoute } from './route.ts'
import {
  type Cells,
  type Columns,
  LISTED,
  renderAdminPage,
  renderAuditLinks,
  renderDangerLink,
  renderFacts,
  renderLink,
  renderTable,
} from './shell.ts'

const KINDS: Readonly<Record<AuditKind, string>> = {
  fhir: 'FHIR request',
  login: 'Sign-in',
  logout: 'Sign-out',
  launch: 'Launch',
  authorize: 'Authorization request',
  token: 'Tokens issued',
  refresh: 'Tokens renewed',
  introspect: 'Token introspection',
  revoke: 'Access revoked',
  register: 'App registered',
  admin: 'Administration',
  'session-open': 'App session started',
  'session-renew': 'App session renewed',
  'session-end': 'App session ended',
  api: 'Session API request',
  seal: 'Audit trail sealed',
}

/** `/admin/audit`: review of the audit trail, and its export. */
export const auditRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/audit',
    async handle(request) {
      const { context, form } = request
      const meant = await findPatientsOf(request)
      const view = await readAuditView(request.admin, form, meant?.ids)
      const after = describeFilter(view.filter, view.unknown)
      await recordAction(request.admin, { operation: LIST_RECORDS, after })
      const { items: records, next: older } = await listRecords(request.admin, {
        ...view.filter,
        after: form.get('after'),
        limit: LISTED,
      })
      const { kind } = view.fields
      const hasSummary = meant && (kind === '' || kind === 'fhir') && form.get('after') === undefined
      const summary = hasSummary ? await summarizeAccess(request.admin, view.filter) : undefined
      const named = [...records, ...(summary?.accesses.map(({ record }) => record) ?? [])]
      const [names, choices, patients] = await Promise.all([
        findNames(context.store, named),
        findChoices(context),
        findPatientNames(
          request,
          records.flatMap(record => listPatients(record).shown),
          meant,
        ),
      ])
      return renderAuditPage(request, { view, records, older, names, choices, meant, summary, patients })
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
      await recordAction(request.admin, { operation: SHOW_RECORD, target: String(id) })
      const { fhirBaseUrl } = context.settings
      const event = toAuditEvent(record, { fhirBaseUrl, ids: await openEventIds(context.store) })
      const names = await findNames(context.store, [record])
      const patients = await findPatientNames(request, readFiledPatients(record).patients)
      const grant = await findUsableGrant(request, record)
      const workstation = (await findWorkstations(context.store, [record])).get(record.launch_id)
      return renderRecordPage(request, record, { names, event, grant, workstation, patients })
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
      return isFailure(report) ? report : '/audit/verify'
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
      return reply.sendPage(renderVerification(request, report, checked), {
        status: isFailure(checked) ? (checked.code === 'unavailable' ? 503 : 422) : 200,
      })
    },
  },
  { method: 'GET', path: '/audit/export.ndjson', handle: request => sendExport(request, 'ndjson') },
  { method: 'GET', path: '/audit/export.csv', handle: request => sendExport(request, 'csv') },
]

/** Downloads the filtered records, and records the export. */
async function sendExport(request: AdminRequest, format: ExportFormat): Promise<FastifyReply | AdminFailure> {
  const { admin, context, reply, form } = request
  const { fhirBaseUrl } = context.settings
  const meant = await findPatientsOf(request)
  const view = await readAuditView(admin, form, meant?.ids)
  const parts = await exportRecords(admin, format, { ...view, fhirBaseUrl })
  if (isFailure(parts)) return parts
  return reply
    .type(EXPORT_FORMATS[format].type)
    .header('content-disposition', `attachment; filename="audit.${format}"`)
    .send(Readable.from(parts))
}

/** The patients that the filter means. */
async function findPatientsOf(request: AdminRequest): Promise<MeantPatients | undefined> {
  const text = request.form.get('patient')?.trim() ?? ''
  return text === '' ? undefined : findMeantPatients(request, text)
}

interface AuditPage {
  readonly meant: MeantPatients | undefined
  readonly summary: AccessSummary | undefined
  readonly view: AuditView
  readonly records: readonly KeptRecord[]
  /** The position of older records. */
  readonly older: string | undefined
  readonly names: Names
  readonly choices: Choices
  readonly patients: PatientNames
}

function renderAuditPage(request: AdminRequest, page: AuditPage): Html {
  const { view, records, older, meant, summary } = page
  const columns = ['Time', 'Result', 'Event', 'Who', 'App', 'Patient', { head: 'Details', isHidden: true }]
  const rows = records.map(record => renderRow(record, page))
  return renderAdminPage(
    request,
    {
      section: 'audit',
      title: 'Audit',
      lead: 'Events with their user, app, patient and result, newest first.',
      actions: html`${renderLink('/audit/verify', 'Verify', 'btn btn--quiet btn--small')}${renderLink(`/audit/export.ndjson${buildAuditQuery(view)}`, 'Export NDJSON', 'btn btn--quiet btn--small')}${renderLink(`/audit/export.csv${buildAuditQuery(view)}`, 'Export CSV', 'btn btn--quiet btn--small')}`,
    },
    html`${renderFilters(page)}
${meant && renderMeantPatients(meant, patient => `/audit${buildAuditQuery({ ...view, fields: { ...view.fields, patient } })}`)}
${summary && renderSummary(summary, page)}
${records.length === 0 ? renderNone(request, page) : renderTable('Audit records, newest first', columns, rows)}
${older && html`<p class="actions after">${renderLink(`/audit${buildAuditQuery(view, older)}`, 'Show older records', 'btn btn--quiet')}</p>`}
<p class="small muted after">An export has the filtered records, at most ${LIMITS.exportedRecords.toLocaleString('en')}. NDJSON has FHIR AuditEvents.</p>`,
  )
}

/** People and apps that are shown of each use in a summary. */
const SUMMARIZED = 20

/** Who looked at a patient, and the way to the records and to what can still be used. */
function renderSummary(summary: AccessSummary, page: AuditPage): Html | undefined {
  const { accesses, isCut } = summary
  if (accesses.length === 0) return undefined
  const of = (use: AccessUse) => accesses.filter(access => access.use === use)
  const render = (caption: string, some: readonly Access[]) => {
    const rows = some.slice(0, SUMMARIZED).map(access => renderAccess(access, summary, page))
    const more = some.length - SUMMARIZED
    return html`${renderTable(caption, ACCESS_COLUMNS, rows)}${more > 0 && html`<p class="small muted">${more} more are not shown. Choose days to narrow it.</p>`}`
  }
  const fold = (text: string, some: readonly Access[]) =>
    some.length > 0 &&
    html`<details class="more after"><summary>${text}: ${countRequests(some)}</summary>${render(`${text}, the last first`, some)}</details>`
  const opened = of('opened')
  return html`<h2 class="section__title subhead">Who got data</h2>
${opened.length === 0 ? html`<p>Nobody opened the record.</p>` : render('Who opened the record, the last first', opened)}
${fold('Appeared in a list', of('list'))}
${fold(ADMINISTRATION_NOTE, of('lookup'))}
${isCut && html`<p class="small muted">Only the newest 5,000 records are counted. Choose days to narrow it.</p>`}
<h2 class="section__title subhead">Records</h2>`
}

const ACCESS_COLUMNS: Columns = [
  ...['Who', 'App', 'From', 'Requests', 'Last'],
  { head: 'Links', isHidden: true },
]

function countRequests(accesses: readonly Access[]): string {
  const count = accesses.reduce((sum, { requests }) => sum + requests, 0)
  return count === 1 ? '1 request' : `${count.toLocaleString('en')} requests`
}

function renderAccess(
  { record, workstation, requests, hasChanged, firstAt }: Access,
  { existing }: AccessSummary,
  { view, names }: AuditPage,
): Cells {
  const user = record.subject ?? record.fhir_user ?? ''
  const app = record.client_id ?? ''
  const who = describeUser(record, names) ?? 'Unknown'
  const fields = { ...view.fields, user, app }
  const hasUser = user !== '' && user !== app
  return [
    hasUser ? who : 'No user',
    html`${app === '' ? '–' : describeApp(record, names)}${hasChanged && html` ${renderBadge(ACCESS_KINDS.changed, 'warn')}`}`,
    renderOrigin(record, workstation),
    requests.toLocaleString('en'),
    html`${renderMoment(record.at)}${firstAt < record.at && html`<span class="sub">First ${renderMoment(firstAt)}</span>`}`,
    html`<span class="actions">${renderLink(`/audit${buildAuditQuery({ ...view, fields })}`, html`Records<span class="sr"> of ${who}</span>`)}${renderAccessNow(record, existing, who)}</span>`,
  ]
}

/** An app's server makes the requests of its browsers. */
function renderOrigin({ address }: KeptRecord, workstation: string | undefined): Html | string {
  if (workstation === undefined || workstation === address) return address ?? '–'
  return html`${workstation}<span class="sub">Requests from ${address ?? 'an unknown address'}</span>`
}

/** What can still be used, and ended: the portal has no access of its own, only the sign-ins of its users. */
function renderAccessNow(
  { subject, client_id: app }: KeptRecord,
  existing: AccessSummary['existing'],
  who: string,
): Html | undefined {
  const user = subject !== null && subject !== app ? subject : undefined
  if (user !== undefined && !existing.has(user)) return undefined
  const of = html`<span class="sr"> of ${who}</span>`
  if (app === PORTAL_CLIENT)
    return user === undefined
      ? undefined
      : renderLink(`/clinicians/${encodeURIComponent(user)}#sign-ins`, html`Sign-ins now${of}`)
  if (app === null || !existing.has(app)) return undefined
  const query = new URLSearchParams({ ...(user !== undefined && { user }), app })
  return renderLink(`/access?${query}`, html`Access now${of}`)
}

const VERIFIED: Readonly<Record<VerificationReport['state'], (report: VerificationReport) => Html>> = {
  never: () => renderAlert('Not verified yet.', 'This audit trail has never been verified.', 'warn'),
  running: () => renderAlert('Running.', 'Load this page again in a moment.'),
  failed: () =>
    renderAlert('Not finished.', 'The last verification was interrupted. Start it again.', 'warn'),
  intact: () => renderAlert('No change found.', 'No sealed record was changed, removed or inserted.', 'ok'),
  changed: ({ problems = [] }) =>
    html`${renderAlert('The audit trail was changed.', 'Keep the databases as they are, and compare with a backup or a feed.', 'bad')}
<ul>${problems.map(problem => html`<li>${problem}</li>`)}</ul>`,
}

function renderVerification(
  request: AdminRequest,
  report: VerificationReport,
  checked?: FileCheck | AdminFailure,
): Html {
  const { state, at, records, seals, unsealed, head } = report
  return renderAdminPage(
    request,
    {
      section: 'audit',
      title: 'Verify the audit trail',
      lead: 'Finds records that were changed, removed, inserted or filed under other patients.',
      actions: renderLink('/audit', 'All records', 'btn btn--quiet btn--small'),
    },
    html`${checked && renderChecked(checked)}
<h2 class="section__title${checked && ' subhead'}" id="s-chain">The hash chain</h2>
${VERIFIED[state](report)}
${
  at !== undefined &&
  renderFacts([
    [state === 'running' ? 'Began' : 'Last verified', renderDateTime(at)],
    ['Records', records?.toLocaleString('en')],
    ['Seals', seals?.toLocaleString('en')],
    ['Not yet sealed', unsealed?.toLocaleString('en')],
    [
      'Head',
      head &&
        html`<code class="url">${head}</code><span class="sub">Keep it outside this server. A later verification can then also detect records removed from the end of the trail.</span>`,
    ],
  ])
}
<form class="card card__body stack after" method="post" action="${paths.admin}/audit/verify" aria-labelledby="s-chain">
<p>Recomputes the hashes over all records and compares them with the stored ones. A long trail takes minutes.</p>
${renderField({ name: 'head', label: 'Head of an earlier verification', hint: 'Optional: finds records that were removed from the end.' })}
<div class="actions"><button class="btn">Verify now</button></div></form>
<h2 class="section__title subhead" id="s-file">Check an exported file</h2>
<form class="card card__body stack" method="post" enctype="multipart/form-data" action="${paths.admin}/audit/check-file" aria-labelledby="s-file">
<p>Compares each record of a file with the trail of now: which are unchanged, differ, or are not there. Nothing is imported.</p>
<p class="field"><label class="field__label" for="file">File</label><input class="input" id="file" name="file" type="file" accept=".ndjson,.csv" required aria-describedby="file-hint"><span class="field__hint" id="file-hint">An NDJSON or CSV export of this audit trail, at most ${LIMITS.exportedFileBytes / 1024 / 1024} MB. For a longer one: <code>${HOW} audit check-file</code></span></p>
<div class="actions"><button class="btn btn--quiet">Check file</button></div></form>`,
  )
}

function renderChecked(checked: FileCheck | AdminFailure): Html {
  if (isFailure(checked))
    return html`<div role="alert">${renderAlert('The file was not checked.', checked.sentence, 'bad')}</div>`
  const { records, unchanged, changed, expired, missing } = checked
  const isGood = changed.count === 0 && missing.count === 0
  const count = (number: number) => number.toLocaleString('en')
  return html`<div role="status">${
    isGood
      ? renderAlert(
          'The file agrees with the trail.',
          `${count(unchanged)} of ${count(records)} records are unchanged.`,
          'ok',
        )
      : renderAlert(
          'The file differs from the trail.',
          'The file or the trail was changed, or the file is of another trail. Verify the trail, and keep the file.',
          'bad',
        )
  }</div>
<section aria-label="Result" class="after">${renderFacts([
    ['Records of the file', count(records)],
    ['Unchanged in the trail', count(unchanged)],
    ['Different in the trail', renderGroup(changed)],
    ['Not in the trail', renderGroup(missing)],
    ['Older than the trail', renderGroup(expired)],
  ])}</section>`
}

function renderGroup({ count, first }: FileCheck['changed']): Html {
  return html`${count.toLocaleString('en')}${
    count > 0 &&
    html`<ul class="list">${first.map(({ id, differs = [] }) => html`<li>${differs.length > 0 ? renderLink(`/audit/${id}`, `Record ${id}`) : html`<code class="url">${id}</code>`}${differs.length > 0 && `: ${differs.join(', ')}`}</li>`)}${count > first.length && html`<li>and ${count - first.length} more</li>`}</ul>`
  }`
}

/** A page reads a bounded number of records, so it may find none although older ones match. */
function renderNone({ context }: AdminRequest, { older, meant, view: { unknown } }: AuditPage): Html {
  if (!context.settings.audit.kept) return html`<div class="card">${renderAuditOff()}</div>`
  if (unknown.length > 0 && !older)
    return renderAlert(
      'Unknown user or app.',
      `${describeUnknown(unknown).replace(/^n/, 'N')}. Check the spelling: this does not say that there are no records.`,
      'warn',
    )
  if (meant?.found.length === 0 && meant.fault !== undefined && !older)
    return renderAlert(
      'Unknown patient.',
      `${meant.fault} Check the spelling: this does not say that there are no records.`,
      'warn',
    )
  return html`<div class="card">${renderEmptyState(
    older
      ? { title: 'No match among the newest records', text: 'Older records may match.' }
      : { title: 'No matching records', text: 'No record of the audit trail matches these filters.' },
  )}</div>`
}

function renderFilters({ view: { fields }, choices }: AuditPage): Html {
  const results: readonly Choice[] = [
    ['allowed', 'Allowed'],
    ['refused', 'Refused'],
  ]
  const set = Object.values(fields).filter(value => value !== '').length
  return html`<details class="more filters"><summary>Filters${set > 0 && `: ${set} set`}</summary><form class="narrow narrow__form" method="get" action="${paths.admin}/audit" role="search" aria-label="Audit records">
${renderSelect('kind', 'Event', 'All events', Object.entries(KINDS), fields.kind)}
${renderSelect('result', 'Result', 'All results', results, fields.result)}
${renderInput('user', 'User', fields.user, choices.users)}
${renderInput('app', 'App', fields.app, choices.apps)}
${renderInput('patient', 'Patient (name, MRN or id)', fields.patient)}
${renderInput('target', 'Changed account or app', fields.target)}
${renderInput('launch', 'Launch id', fields.launch)}
${renderInput('address', 'Address of the request', fields.address)}
${renderInput('since', 'From (UTC)', fields.since, undefined, 'date')}
${renderInput('until', 'To (UTC)', fields.until, undefined, 'date')}
<p class="narrow__act"><button class="btn btn--small">Show</button> ${renderLink('/audit', 'Show all', 'btn btn--quiet btn--small')}</p>
</form></details>`
}

function renderRow(record: KeptRecord, { names, patients }: AuditPage) {
  return [
    html`${renderMoment(record.at, { form: 'date' })} <span class="sub">${renderMoment(record.at, { form: 'exact' })}</span>`,
    html`${renderResult(record)} <span class="status">${record.status}</span>`,
    html`${describeEvent(record)}${record.reason !== null && html`<span class="sub">${record.reason}</span>`}`,
    renderWho(record, names),
    record.client_id === null ? '–' : describeApp(record, names),
    renderPatientList(record, patients),
    renderLink(`/audit/${record.id}`, html`Details<span class="sr"> of record ${record.id}</span>`),
  ]
}

/** A person, or a command's operator, and the address. */
function renderWho(record: KeptRecord, names: Names): Html {
  const who = describeUser(record, names)
  const { address } = record
  return html`${who ?? '–'}${address !== null && address !== who && html`<span class="sub">${address}</span>`}`
}

function describeEvent({ kind, interaction, resource_type: type, request, repeats }: KeptRecord): Html {
  const name = KINDS[kind as AuditKind] ?? kind
  const detail =
    kind === 'admin'
      ? html`<code>${request}</code>`
      : [interaction, type].filter(part => part !== null).join(' ')
  return html`${name}${detail !== '' && html`: ${detail}`}${repeats !== null && `, ${formatRepeats(repeats)}`}`
}

function describeUser({ subject, fhir_user, method, address }: KeptRecord, names: Names): string | undefined {
  const named = (subject === null ? undefined : names.user(subject)) ?? fhir_user ?? subject
  return named ?? (method === 'sallyport' ? address : undefined) ?? undefined
}

/** Patients that are shown of each record in a list. */
const PATIENTS_SHOWN = 3

function listPatients(record: KeptRecord) {
  const { patients, hasOthers } = readFiledPatients(record)
  const more = patients.length - PATIENTS_SHOWN
  return {
    shown: patients.slice(0, PATIENTS_SHOWN),
    rest: [...(more > 0 ? [`${more} more`] : []), ...(hasOthers ? ['others'] : [])].join(' and '),
  }
}

function renderPatientList(record: KeptRecord, names: PatientNames): Html | string {
  const { shown, rest } = listPatients(record)
  if (shown.length === 0) return rest === '' ? '–' : 'Others'
  return html`${shown.map(id => html`<div>${renderPatient(id, names)}</div>`)}${rest !== '' && html`<span class="sub">and ${rest}</span>`}`
}

/** The grant of the record's launch, if it can still be used. */
async function findUsableGrant(
  { admin }: AdminRequest,
  { launch_id }: KeptRecord,
): Promise<GrantDescription | undefined> {
  const grant = launch_id === null ? undefined : await findGrant(admin, launch_id)
  return isFailure(grant) ? undefined : grant
}

interface RecordPage {
  readonly names: Names
  readonly event: object
  readonly grant: GrantDescription | undefined
  readonly workstation: string | undefined
  readonly patients: PatientNames
}

function renderRecordPage(
  request: AdminRequest,
  record: KeptRecord,
  { names, event, grant, workstation, patients }: RecordPage,
): Html {
  const user = describeUser(record, names)
  const target = renderTarget(record)
  const code = (text: string | null) => (text === null ? undefined : html`<code>${text}</code>`)
  return renderAdminPage(
    request,
    {
      section: 'audit',
      title: `Record ${record.id}`,
      actions: renderLink('/audit', 'All records', 'btn btn--quiet btn--small'),
    },
    html`${renderFacts([
      ['Time', renderMoment(record.at, { form: 'seconds' })],
      ['Result', html`${renderResult(record)} <span class="status">${record.status}</span>`],
      ['Event', describeEvent(record)],
      ['Reason', record.reason ?? undefined],
      ['Server', record.server],
      [
        'User',
        user &&
          (record.subject === null
            ? user
            : html`${user} ${renderAuditLinks(['Records of this user', { user: record.subject }])}`),
      ],
      ['FHIR user', code(record.fhir_user)],
      [
        'App',
        record.client_id === null
          ? undefined
          : html`${names.app(record.client_id) ?? ''} <code>${record.client_id}</code> ${renderAuditLinks(['Records of this app', { app: record.client_id }])}`,
      ],
      ['Patients', renderPatients(record, patients)],
      ...(target ? [['Changed', target] as const] : []),
      ['Request', code(record.request && `${record.method ?? ''} ${record.request}`)],
      ['Decided by', code(record.decided_by)],
      [
        'Launch id',
        record.launch_id === null
          ? undefined
          : html`${code(record.launch_id)} ${renderAuditLinks(['Records of this launch', { launch: record.launch_id }])}`,
      ],
      ...(grant
        ? [
            [
              'Access now',
              html`<p>${grant.clientName} can still use this access on behalf of ${grant.displayName}.</p> ${request.mayChange && renderDangerLink(`/grants/${encodeURIComponent(grant.id)}/revoke`, 'Revoke access')}`,
            ] as const,
          ]
        : []),
      ['Request id', code(record.request_id)],
      ...(workstation === undefined
        ? []
        : [
            [
              'Workstation',
              html`${code(workstation)}<span class="sub">The browser in which the app was authorized.</span>`,
            ] as const,
          ]),
      [
        'Address',
        record.address === null
          ? undefined
          : html`${code(record.address)} ${renderAuditLinks(['Records of this address', { address: record.address }])}`,
      ],
    ])}
${record.details !== null && renderDetails(JSON.parse(record.details))}
<details class="more after"><summary>As a FHIR AuditEvent</summary><pre class="card card__body">${JSON.stringify(event, null, 2)}</pre></details>`,
  )
}

function renderPatients(record: KeptRecord, names: PatientNames): Html | undefined {
  const { patients, hasOthers } = readFiledPatients(record)
  if (patients.length === 0 && !hasOthers) return undefined
  const links = patients.map(id => {
    const person = names.get(id)
    const path = `/audit?${new URLSearchParams({ patient: `Patient/${id}` })}`
    return person
      ? html`${renderLink(path, html`<bdi>${formatName(person.name)}</bdi>`)} <code>${id}</code>`
      : renderLink(path, id)
  })
  return html`${links.map((link, at) => html`${at > 0 && ', '}${link}`)}${hasOthers && `${patients.length > 0 ? ', ' : ''}others`}`
}

const TARGETS: Readonly<Record<TargetType, string>> = { account: 'account', client: 'app', grant: 'grant' }

/** What an administrator changed, with all its changes. */
function renderTarget({ kind, resource_type: type, resource_id: id }: KeptRecord): Html | undefined {
  const name = kind === 'admin' ? findOwn(TARGETS, type ?? '') : undefined
  if (name === undefined || id === null) return undefined
  return html`<code>${id}</code> ${renderAuditLinks([`Changes to this ${name}`, { target: `${name}/${id}` }])}`
}
