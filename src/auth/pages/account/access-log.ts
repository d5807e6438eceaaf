import { findPage, type KeptRecord, openEventIds } from '../../../audit/index.ts'
import { PORTAL_CLIENT } from '../../../smart/index.ts'
import {
  type Html,
  html,
  type Person,
  renderDateTime,
  renderEmptyState,
  renderPageHead,
  renderTable,
} from '../../../web/index.ts'
import { createNameReader } from '../../base/fhir-reader.ts'
import { paths } from '../../base/paths.ts'
import type { Parameters } from '../../base/request.ts'
import { findOwnPatient } from '../../base/user.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { findByIds } from '../../oauth/launch/patients.ts'
import type { Login } from '../../users/find-login.ts'
import { chooseVerb, describeApp, findNames, type Names } from '../activity/describe.ts'
import { describeKind } from '../consent/texts.ts'
import { renderSignedInPage } from '../page-parts.ts'

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

export function renderAccessLogPage(context: AuthContext, login: Login, log: AccessLog): Html {
  const { people, records } = log
  const title = `Who looked at ${findOwnPatient(login.user) === log.patientId ? 'my record' : describeRecord(log)}`
  return renderSignedInPage(
    context,
    login,
    { title, current: 'access-log', people },
    html`${renderPageHead(title, `Every time that a person or an app read or changed ${describeRecord(log)}, newest first.`)}
${people.length > 1 && renderChoice(log)}
<div class="card${records.length > 0 && ' card--clip'}">${records.length === 0 ? NOBODY : renderRecords(login, log)}</div>
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

const NOBODY = renderEmptyState({
  title: 'Nobody looked at this record',
  text: 'An entry appears here when a person or an app opens it.',
})

function renderRecords({ user }: Login, { records, names }: AccessLog): Html {
  const findWho = (subject: string) => (subject === user.id ? 'You' : names.user(subject))
  return renderTable(
    {
      caption: 'Access to the record, newest first',
      kind: 'table--stack',
      columns: [{ head: 'Time', isNowrap: true }, 'Who', 'App', 'Data'],
      isUnnamed: true,
    },
    records.map(record => {
      const { at, subject, resource_type: type, interaction } = record
      const kind = type === null ? 'Several kinds of data' : describeKind(type).title
      return [
        renderDateTime(at),
        (subject === null ? undefined : findWho(subject)) ?? 'The app itself',
        describeApp(record, names),
        html`${kind}<span class="sub">${chooseVerb(interaction ?? '')}</span>`,
      ]
    }),
  )
}

function buildUrl(patient: string, before?: string): string {
  const query = new URLSearchParams({ patient, ...(before !== undefined && { before }) })
  return `${paths.accountAccessLog}?${query}`
}
