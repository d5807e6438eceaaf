import type { FastifyRequest } from 'fastify'
import {
  chooseRecordNumber,
  findAlike,
  formatSex,
  type Html,
  html,
  type Person,
  readPerson,
  renderBadge,
  renderDate,
  renderDateTime,
  renderName,
  renderPage,
} from '../../web/index.ts'
import { queryApi } from '../api/endpoint.ts'
import { patientEndpoint } from '../api/endpoints.ts'
import { isSampleData, linkPortal } from '../context.ts'
import type { Failure, Result } from '../failure.ts'
import { isFailure } from '../failure.ts'
import type { AppContext } from '../oauth/context.ts'
import { getSessionPath, type Session } from '../session.ts'
import { listOpenSessions, readSessionCookies } from '../sessions/session-store.ts'
import { nameFailure, renderEndedPage, renderWelcomePage, type StatePage } from './states.ts'

/** A session of the browser with its patient. */
export interface OpenSession {
  readonly session: Session
  readonly patient: Result<Person>
}

/** The open sessions of the browser, the newest first, without the one of a page. Reading their patients does not extend them. */
export async function loadOpenSessions(
  context: AppContext,
  request: FastifyRequest,
  own?: Session,
): Promise<readonly OpenSession[]> {
  const held = readSessionCookies(context, request).filter(({ sessionId }) => sessionId !== own?.sessionId)
  const sessions = await listOpenSessions(context, context.store.db, held)
  const loaded = await Promise.all(sessions.map(session => loadPatient(context, session, request.id)))
  return loaded.filter(({ patient }) => !isFailure(patient) || !hasEnded(patient))
}

async function loadPatient(context: AppContext, session: Session, requestId: string): Promise<OpenSession> {
  const read = await queryApi(patientEndpoint, { context, session, requestId })
  return { session, patient: isFailure(read) ? read : readPerson(read) }
}

function hasEnded({ kind }: Failure): boolean {
  return kind === 'session-ended' || kind === 'token-refused'
}

/** `/`: the open sessions with their patients (SESSION-8). If all have ended it says so; without any it invites to launch. */
export async function renderOpenSessions(context: AppContext, request: FastifyRequest): Promise<StatePage> {
  const open = await loadOpenSessions(context, request)
  if (open.length > 0) return { status: 200, page: renderList(context, open) }
  return readSessionCookies(context, request).length > 0
    ? { status: 401, page: renderEndedPage(context) }
    : { status: 200, page: renderWelcomePage(context.settings) }
}

function renderList({ settings }: AppContext, open: readonly OpenSession[]): Html {
  return renderPage(
    {
      title: 'Open sessions',
      site: 'Demo app',
      bar: { kind: 'app', links: [linkPortal(settings, 'Patients')] },
      width: 'mid',
      sampleData: isSampleData(settings),
    },
    html`<div class="pagehead"><div><h1>Open sessions</h1><p class="pagehead__lead">Each session shows one patient, and stays open until it ends or you end it.</p></div></div>
<div class="stack"><section class="card card--clip" aria-label="Open sessions"><table class="table table--stack sessions" role="table"><caption class="sr">Open sessions in this browser</caption><thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Patient</th><th role="columnheader" scope="col">Opened</th><th role="columnheader" scope="col">Ends</th><th role="columnheader" scope="col"><span class="sr">Action</span></th></tr></thead><tbody role="rowgroup">
${open.map(one => renderSession(one, open))}</tbody></table></section>
<p class="actions"><a class="btn btn--quiet" href="/launch">Choose another patient</a></p></div>`,
  )
}

function renderSession({ session, patient }: OpenSession, open: readonly OpenSession[]): Html {
  const path = getSessionPath(session)
  const name = !isFailure(patient) ? renderName(patient.name) : html`${nameFailure(patient)}`
  const isSimilar = !isFailure(patient) && findAlike(patient, listPeople(open)).length > 0
  return html`<tr role="row"><th role="rowheader" scope="row"><a href="${path}">${name}</a>${
    isSimilar && html`&ensp;${renderBadge('Similar name', 'warn')}`
  }<span class="sub">${!isFailure(patient) ? describePerson(patient) : `FHIR id ${session.patientId}`}</span></th><td role="cell" data-label="Opened">${renderDateTime(session.createdAt)}</td><td role="cell" data-label="Ends">${renderDateTime(session.endsAt)}</td><td role="cell"><form method="post" action="${path}/logout"><button class="btn btn--quiet btn--small">End session<span class="sr"> of ${name}</span></button></form></td></tr>
`
}

function describePerson(person: Person): Html {
  const { label, value } = chooseRecordNumber(person)
  return html`Born ${renderDate(person.born)}, ${formatSex(person.gender)}, ${label} ${value}`
}

export function listPeople(open: readonly OpenSession[]): readonly Person[] {
  return open.flatMap(({ patient }) => (isFailure(patient) ? [] : [patient]))
}
