import type { KeptRecord } from '../../../../audit/index.ts'
import { readFiledPatients, type TargetType } from '../../../../audit-record/index.ts'
import { findOwn, isFailure } from '../../../../core/index.ts'
import { formatName } from '../../../../web/person/index.ts'
import { type Html, html, renderMoment } from '../../../../web/ui/index.ts'
import { renderResult } from '../../../pages/parts/audit-result.ts'
import type { KnownNames } from '../../../pages/parts/explain/describe.ts'
import { findGrant, type GrantDescription } from '../../access/grants.ts'
import { renderDetails } from '../../page/details.ts'
import type { PatientNames } from '../../page/find-patients.ts'
import type { AdminRequest } from '../../page/route.ts'
import {
  renderAdminPage,
  renderAuditLinks,
  renderDangerLink,
  renderFacts,
  renderLink,
} from '../../page/shell.ts'
import { describeEvent, describeUser } from './describe-record.ts'

/** The grant of the record's launch, if it can still be used. */
export async function findUsableGrant(
  { admin }: AdminRequest,
  { launch_id }: KeptRecord,
): Promise<GrantDescription | undefined> {
  const grant = launch_id === null ? undefined : await findGrant(admin, launch_id)
  return isFailure(grant) ? undefined : grant
}

interface RecordPage {
  readonly names: KnownNames
  readonly event: object
  readonly grant: GrantDescription | undefined
  readonly workstation: string | undefined
  readonly patients: PatientNames
}

export function renderRecordPage(
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
      ...(target ? [[record.allowed ? 'Changed' : 'Not changed', target] as const] : []),
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
