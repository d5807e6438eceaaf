import { type TSchema, Type } from 'typebox'
import type { KeptRecord } from '../../../audit/index.ts'
import { readFiledPatients, type TargetType } from '../../../audit-record/index.ts'
import { findOwn } from '../../../core/index.ts'
import { Time } from '../../../endpoint/index.ts'
import { formatName } from '../../../web/person/index.ts'
import { type Html, html, renderMoment } from '../../../web/ui/index.ts'
import { renderResult } from '../../pages/parts/audit-result.ts'
import { describeApp, type KnownNames } from '../../pages/parts/explain/describe.ts'
import type { GrantDescription } from '../access/grants.ts'
import type { SubjectColumn, SubjectColumns } from '../subject/columns.ts'
import { type PatientNames, renderPatient } from '../subject/page/find-patients.ts'
import { renderAuditLinks, renderDangerLink, renderLink } from '../subject/page/shell.ts'
import { describeEvent, describeUser } from './describe-record.ts'

/** A record, with what programs or people are told about it. */
export interface ShownRecord {
  readonly record: KeptRecord
  /** Of its user, if there is one. */
  readonly username?: string | undefined
  readonly names?: KnownNames
  readonly patients?: PatientNames
  /** That of its launch, if it can still be used. */
  readonly grant?: GrantDescription | undefined
  readonly workstation?: string | undefined
}

const NO_NAMES: KnownNames = { user: () => undefined, app: () => undefined }

/** A member of a record, if it has a value. */
function keep(name: keyof KeptRecord, schema: TSchema): SubjectColumn<ShownRecord> {
  return { of: ({ record }) => record[name] ?? undefined, schema: Type.Optional(schema) }
}

/** The members of a record, in the API and in a file. CSV has them in this order. */
export const RECORD_MEMBERS: SubjectColumns<ShownRecord> = {
  id: { of: ({ record }) => record.id, schema: Type.Integer() },
  at: { of: ({ record }) => record.at, schema: Time },
  server: { of: ({ record }) => record.server, schema: Type.String(), about: '`auth`, `fhir` or `app`.' },
  kind: { of: ({ record }) => record.kind, schema: Type.String() },
  interaction: keep('interaction', Type.String()),
  allowed: {
    of: ({ record }) => Boolean(record.allowed),
    schema: Type.Boolean(),
    csv: ({ record }) => record.allowed,
  },
  status: { of: ({ record }) => record.status, schema: Type.Integer() },
  method: keep('method', Type.String()),
  request: keep('request', Type.String()),
  resource_type: keep('resource_type', Type.String()),
  resource_id: keep('resource_id', Type.String()),
  patient_id: keep('patient_id', Type.String()),
  patients: { ...keep('patients', Type.String()), about: 'Instead of `patient_id`, if there are several.' },
  client_id: keep('client_id', Type.String()),
  subject: { ...keep('subject', Type.String()), about: 'The id of an account, or of a backend service.' },
  fhir_user: keep('fhir_user', Type.String()),
  decided_by: keep('decided_by', Type.String()),
  reason: keep('reason', Type.String()),
  launch_id: keep('launch_id', Type.String()),
  request_id: keep('request_id', Type.String()),
  address: keep('address', Type.String()),
  repeats: { ...keep('repeats', Type.Integer()), about: 'The number of anonymous requests that it counts.' },
  details: {
    of: ({ record: { details } }) => (details === null ? undefined : JSON.parse(details)),
    schema: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    csv: ({ record }) => record.details ?? undefined,
  },
  username: { of: 'username', schema: Type.Optional(Type.String()) },
}

/** The list of records, and the page of one. */
export const RECORD_CELLS: SubjectColumns<ShownRecord> = {
  time: {
    page: [
      'Time',
      ({ record: { at } }) =>
        html`${renderMoment(at, { form: 'date' })} <span class="sub">${renderMoment(at, { form: 'exact' })}</span>`,
    ],
    detail: ['Time', ({ record }) => renderMoment(record.at, { form: 'seconds' })],
  },
  result: {
    page: ['Result', renderOutcome],
    detail: ['Result', renderOutcome],
  },
  event: {
    page: [
      'Event',
      ({ record }) =>
        html`${describeEvent(record)}${record.reason !== null && html`<span class="sub">${record.reason}</span>`}`,
    ],
    detail: ['Event', ({ record }) => describeEvent(record)],
  },
  reason: { detail: ['Reason', ({ record }) => record.reason ?? NONE] },
  server: { detail: ['Server', ({ record }) => record.server] },
  user: {
    page: ['Who', renderWho],
    detail: [
      'User',
      ({ record, names = NO_NAMES }) => addLinks(describeUser(record, names), 'user', record.subject),
    ],
  },
  fhir_user: { detail: ['FHIR user', ({ record }) => renderCode(record.fhir_user) ?? NONE] },
  app: {
    page: [
      'App',
      ({ record, names = NO_NAMES }) => (record.client_id === null ? '–' : describeApp(record, names)),
    ],
    detail: [
      'App',
      ({ record: { client_id: id }, names = NO_NAMES }) =>
        id === null ? NONE : addLinks(html`${names.app(id) ?? ''} <code>${id}</code>`, 'app', id),
    ],
  },
  patients: {
    page: ['Patient', ({ record, patients }) => renderPatientList(record, patients)],
    detail: ['Patients', ({ record, patients }) => renderPatients(record, patients) ?? NONE],
  },
  changed: {
    detail: [
      ({ record }) => (record.allowed ? 'Changed' : 'Not changed'),
      ({ record }) => renderTarget(record),
    ],
  },
  request: {
    detail: [
      'Request',
      ({ record }) => renderCode(record.request && `${record.method ?? ''} ${record.request}`) ?? NONE,
    ],
  },
  decided_by: { detail: ['Decided by', ({ record }) => renderCode(record.decided_by) ?? NONE] },
  launch: {
    detail: ['Launch id', ({ record: { launch_id: id } }) => addLinks(renderCode(id), 'launch', id)],
  },
  access: {
    detail: [
      'Access now',
      ({ grant }, { mayChange }) =>
        grant &&
        html`<p>${grant.clientName} can still use this access on behalf of ${grant.displayName}.</p> ${mayChange && renderDangerLink(`/grants/${encodeURIComponent(grant.id)}/revoke`, 'Revoke access')}`,
    ],
  },
  request_id: { detail: ['Request id', ({ record }) => renderCode(record.request_id) ?? NONE] },
  workstation: {
    detail: [
      'Workstation',
      ({ workstation = null }) =>
        workstation === null
          ? undefined
          : html`${renderCode(workstation)}<span class="sub">The browser in which the app was authorized.</span>`,
    ],
  },
  address: {
    detail: ['Address', ({ record: { address } }) => addLinks(renderCode(address), 'address', address)],
  },
  link: {
    page: [
      { head: 'Details', isHidden: true },
      ({ record: { id } }) =>
        renderLink(`/audit/${id}`, html`Details<span class="sr"> of record ${id}</span>`),
    ],
  },
}

const NONE = 'None'

function renderCode(text: string | null): Html | undefined {
  return text === null ? undefined : html`<code>${text}</code>`
}

/** A value, and the link to the other records that have it. */
function addLinks(
  shown: Html | string | undefined,
  filter: 'user' | 'app' | 'launch' | 'address',
  value: string | null,
): Html | string {
  if (shown === undefined) return NONE
  return value === null
    ? shown
    : html`${shown} ${renderAuditLinks([`Records of this ${filter}`, { [filter]: value }])}`
}

function renderOutcome({ record }: ShownRecord): Html {
  return html`${renderResult(record)} <span class="status">${record.status}</span>`
}

/** A person, or a command's operator, and the address. */
function renderWho({ record, names = NO_NAMES }: ShownRecord): Html {
  const who = describeUser(record, names)
  const { address } = record
  return html`${who ?? '–'}${address !== null && address !== who && html`<span class="sub">${address}</span>`}`
}

/** Patients that are shown of each record in a list. */
const PATIENTS_SHOWN = 3

export function listPatients(record: KeptRecord) {
  const { patients, hasOthers } = readFiledPatients(record)
  const more = patients.length - PATIENTS_SHOWN
  const counted = more > 0 ? `${more} more` : ''
  return { shown: patients.slice(0, PATIENTS_SHOWN), rest: hasOthers ? 'others' : counted }
}

function renderPatientList(record: KeptRecord, names: PatientNames = new Map()): Html | string {
  const { shown, rest } = listPatients(record)
  if (shown.length === 0) return rest === '' ? '–' : 'Others'
  return html`${shown.map(id => html`<div>${renderPatient(id, names)}</div>`)}${rest !== '' && html`<span class="sub">and ${rest}</span>`}`
}

function renderPatients(record: KeptRecord, names: PatientNames = new Map()): Html | undefined {
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
