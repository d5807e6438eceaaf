import { html, renderAlert } from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { renderAuditOff } from '../../pages/parts/audit-result.ts'
import { findNames } from '../../pages/parts/explain/describe.ts'
import type { Admin, AdminOperation } from '../base/action.ts'
import { defineList, type MoreOfList, type ShownList } from '../subject/list.ts'
import { findPatientNames, type MeantPatients } from '../subject/page/find-patients.ts'
import type { AdminRequest } from '../subject/page/route.ts'
import { renderButton, renderLink } from '../subject/page/shell.ts'
import { listRecords } from './audit.ts'
import { type AccessSummary, summarizeAccess } from './audit-summary.ts'
import { findUsernames } from './audit-who.ts'
import { listPatients, RECORD_CELLS, RECORD_MEMBERS, type ShownRecord } from './columns.ts'
import { DAYS, describeMeant, TRAIL_FILTERS, toRecordFilter } from './filters.ts'
import { renderSummaries } from './pages/audit-summary.ts'
import { findVerification } from './verification.ts'

const LIST_RECORDS: AdminOperation = { name: 'audit list', signIn: 'never asks', isForAuditors: true }

type TrailView = ShownList<typeof TRAIL_FILTERS>

/** The records of the trail. */
export const RECORDS = defineList<ShownRecord, typeof TRAIL_FILTERS>({
  columns: RECORD_MEMBERS,
  filters: TRAIL_FILTERS,
  recorded: { operation: LIST_RECORDS, describe: describeMeant },
  async read(admin, { after, limit, ...meant }) {
    const { items, next } = await listRecords(admin, { ...toRecordFilter(meant), after, limit })
    const usernames = await findUsernames(admin.store, items)
    const rows = items.map(record => ({ record, username: usernames.get(record.subject ?? '') }))
    return { items: rows, next }
  },
  api: {
    path: '/audit',
    title: 'Audit records, newest first',
    description: 'A page may have fewer items than `limit`. The request is recorded too.',
  },
  page: {
    section: 'audit',
    title: 'Audit',
    lead: 'Events with their user, app, patient and result, newest first.',
    caption: 'Audit records, newest first',
    cells: RECORD_CELLS,
    filters: DAYS,
    isFolded: true,
    purpose: 'audit-search',
    notFound: { title: 'No matching records', text: 'No record of the audit trail matches these filters.' },
    noMatch: 'No record of the audit trail matches these filters.',
    notYetFound: { title: 'No match among the newest records', text: 'Older records may match.' },
    unknown: {
      title: 'Unknown user or app.',
      patient: 'Unknown patient.',
      misspelt: 'Check the spelling: the trail may have records under another name or id.',
      unsure: 'The trail may have records of the patient all the same.',
    },
    next: 'Show older records',
    actions: (_, { buildPath }) => {
      const query = buildPath().replace(/^[^?]*/, '')
      return html`${renderButton('/audit/verify', 'Verify')}${renderButton(`/audit/export.ndjson${query}`, 'Export NDJSON')}${renderButton(`/audit/export.csv${query}`, 'Export CSV')}`
    },
    complete: completePage,
  },
})

/** The names of a page, who got data of the patients of its filter, and whether the trail can be relied on. */
async function completePage(
  request: AdminRequest,
  view: TrailView,
  items: readonly ShownRecord[],
): Promise<MoreOfList<ShownRecord>> {
  const { admin, context } = request
  const { meant, patients: found, wanted, isContinued } = view
  const { kind = 'fhir' } = wanted
  const summaries =
    found && kind === 'fhir' && !isContinued ? await summarizeEach(admin, meant, found) : NO_SUMMARIES
  const records = items.map(({ record }) => record)
  const read = [...summaries.values()].flatMap(({ accesses }) => accesses.map(({ record }) => record))
  const ids = [...summaries.keys(), ...records.flatMap(record => listPatients(record).shown)]
  const names = await findNames(context.store, [...records, ...read])
  const patients = await findPatientNames(request, 'administration-names', ids, found)
  const isChanged = (await findVerification(admin)).state === 'changed'
  const hasMany = found !== undefined && found.found.length > SUMMARIZED_PATIENTS
  return {
    items: items.map(item => ({ ...item, names, patients })),
    above:
      isChanged &&
      renderAlert(
        'The audit trail was changed.',
        html`The last verification found it: do not rely on these records. ${renderLink('/audit/verify', 'Show what it found')}`,
        'bad',
      ),
    between: html`${hasMany && html`<p>Choose one of these patients to see who got data.</p>`}${renderSummaries(summaries, { buildPath: view.buildPath, names, patients })}`,
    none: !context.settings.audit.kept && html`<div class="card">${renderAuditOff()}</div>`,
    below: html`<p class="small muted after">An export has the filtered records, at most ${LIMITS.exportedRecords.toLocaleString('en')}. NDJSON has FHIR AuditEvents.</p>`,
  }
}

const NO_SUMMARIES: ReadonlyMap<string, AccessSummary> = new Map()

/** Patients who are summarized on one page. Among more, the administrator chooses one first. */
const SUMMARIZED_PATIENTS = 5

async function summarizeEach(
  admin: Admin,
  meant: TrailView['meant'],
  { ids, found }: MeantPatients,
): Promise<ReadonlyMap<string, AccessSummary>> {
  if (found.length > SUMMARIZED_PATIENTS) return NO_SUMMARIES
  const summaries = new Map<string, AccessSummary>()
  for (const id of ids)
    summaries.set(id, await summarizeAccess(admin, { ...toRecordFilter(meant), patients: [id] }))
  return summaries
}
