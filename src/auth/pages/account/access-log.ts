import { findPage, type KeptRecord, openEventIds } from '../../../audit/index.ts'
import { PORTAL_CLIENT } from '../../../smart/index.ts'
import {
  type Html,
  html,
  type Person,
  renderDateTime,
  renderEmptyState,
  renderPage,
} from '../../../web/index.ts'
import { createNameReader } from '../../base/fhir-reader.ts'
import { paths } from '../../base/paths.ts'
import type { Parameters } from '../../base/request.ts'
import { findOwnPatient } from '../../base/user.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { describeKind } from '../../oauth/grants/kinds.ts'
import { findByIds } from '../../oauth/launch/patients.ts'
import type { Login } from '../../users/find-login.ts'
import { chooseVerb, describeApp, findNames, type Names } from '../activity/describe.ts'
import { makeSignedInBar, showsSampleData } from '../page-parts.ts'

const SHOWN = 50

/** Who looked at a record: FHIR requests about the patient that succeeded, newest first. */
export interface AccessLog {
  readonly patientId: string
  /** All records of the user, to choose from. */
  readonly people: readonly Person[]
  readonly records: readonly KeptRecord[]
  readonly names: Names
  /** Where older records follow. */
  readonly older: string | undefined
}

export async function readAccessLog(
  context: AuthContext,
  { user }: Login,
  patients: readonly [string, ...string[]],
  query: Parameters,
): Promise<AccessLog> {
  const patient = query.get('patient')
  const ids = await openEventIds(context.store)
  const patientId = patients.find(id => id === patient) ?? patients[0]
  const found = await findPage(context.store, {
    events: [{ kind: 'fhir' }],
    allowed: true,
    outcomes: ['0'],
    patients: [patientId],
    after: ids.parse(query.get('before') ?? ''),
    limit: SHOWN + 1,
  })
  const page = found.records.slice(0, SHOWN)
  const older = found.records.length > SHOWN ? page.at(-1) : found.next
  // These pages read for the user, and the auth server reads the RelatedPersons.
  const isOwnPage = ({ client_id, subject }: KeptRecord) =>
    client_id === PORTAL_CLIENT && (subject === user.id || subject === PORTAL_CLIENT)
  return {
    patientId,
    people: await findByIds(await createNameReader(context, user), patients),
    records: page.filter(record => !isOwnPage(record)),
    names: await findNames(context.store, page),
    older: older && ids.format(older),
  }
}

export function renderAccessLogPage({ settings }: AuthContext, login: Login, log: AccessLog): Html {
  const { people, records } = log
  const title = `Who looked at ${findOwnPatient(login.user) === log.patientId ? 'my record' : describeRecord(log)}`
  const options = { bar: makeSignedInBar(login, 'access-log'), sampleData: showsSampleData(settings, people) }
  return renderPage(
    { title, ...options },
    html`<div class="pagehead"><div><h1>${title}</h1>
<p class="pagehead__lead">Every time that a person or an app read or changed ${describeRecord(log)}, newest first.</p></div></div>
${people.length > 1 && renderChoice(log)}
${records.length === 0 ? renderNobody() : renderTable(login, log)}
${log.older && html`<p class="actions"><a class="btn btn--quiet" href="${buildUrl(log.patientId, log.older)}">Show older entries</a></p>`}`,
  )
}

function describeRecord({ people, patientId }: AccessLog): string {
  const person = people.find(({ id }) => id === patientId)
  return person ? `the record of ${formatName(person)}` : 'the record'
}

function formatName({ name }: Person): string {
  return [name.given, name.family].filter(Boolean).join(' ')
}

function renderChoice({ people, patientId }: AccessLog): Html {
  return html`<nav class="actions" aria-label="Records">${people.map(
    person =>
      html`<a class="btn btn--quiet btn--small" href="${buildUrl(person.id)}"${person.id === patientId && html` aria-current="page"`}>${formatName(person)}</a>`,
  )}</nav>`
}

function renderNobody(): Html {
  return html`<div class="card">${renderEmptyState({
    title: 'Nobody looked at this record',
    text: 'An entry appears here when a person or an app opens it.',
  })}</div>`
}

function renderTable(login: Login, { records, names }: AccessLog): Html {
  const heads = ['Time', 'Who', 'App', 'Data']
  return html`<div class="card card--clip"><table class="table table--stack" role="table">
<caption class="sr">Access to the record, newest first</caption>
<thead role="rowgroup"><tr role="row">${heads.map(head => html`<th role="columnheader" scope="col">${head}</th>`)}</tr></thead>
<tbody role="rowgroup">${records.map(record => renderRow(record, login, names))}</tbody>
</table></div>`
}

function renderRow(record: KeptRecord, { user }: Login, names: Names): Html {
  const { subject, resource_type: type, interaction } = record
  const who = subject === null ? undefined : subject === user.id ? 'You' : names.user(subject)
  const kind = type === null ? 'Several kinds of data' : describeKind(type).title
  return html`<tr role="row">
<td role="cell" data-label="Time" class="nowrap">${renderDateTime(record.at)}</td>
<td role="cell" data-label="Who">${who ?? 'The app itself'}</td>
<td role="cell" data-label="App">${describeApp(record, names)}</td>
<td role="cell" data-label="Data">${kind}<span class="sub">${chooseVerb(interaction ?? '')}</span></td>
</tr>
`
}

function buildUrl(patient: string, before?: string): string {
  const query = new URLSearchParams({ patient, ...(before !== undefined && { before }) })
  return `${paths.accountAccessLog}?${query}`
}
