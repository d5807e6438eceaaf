import type { FastifyRequest } from 'fastify'
import { isFailure } from '../../core/index.ts'
import {
  chooseRecordNumber,
  findAlike,
  formatSex,
  type Person,
  readPerson,
  renderName,
} from '../../web/person/index.ts'
import {
  type Html,
  html,
  renderBadge,
  renderDanger,
  renderDate,
  renderDateTime,
  renderMoment,
  renderPageHead,
  renderTable,
} from '../../web/ui/index.ts'
import { queryApi } from '../api/endpoint.ts'
import { patientEndpoint } from '../api/endpoints.ts'
import { type Audience, findAudience, linkHome } from '../audience.ts'
import type { Result, SessionFailure } from '../failure.ts'
import type { AppContext } from '../oauth/context.ts'
import { renderAppPage } from '../page.ts'
import { getSessionPath, type Session } from '../session.ts'
import { checkAccess } from '../sessions/renew-session.ts'
import {
  findVisitor,
  listOpenSessions,
  readSessionCookies,
  type SessionCookie,
} from '../sessions/session-store.ts'
import { nameFailure, renderEndedPage, renderWelcomePage, type StatePage } from './states.ts'

/** The other open sessions of a browser. */
export interface OtherSessions {
  readonly count: number
  /** Their patients, as far as pages have shown them. */
  readonly people: readonly Person[]
}

/** A session of the browser with its patient. */
interface OpenSession {
  readonly session: Session
  readonly patient: Result<Person>
}

/** The other open sessions of the browser. Their patients are not read: a page reads only the record that it shows. */
export async function findOtherSessions(
  context: AppContext,
  request: FastifyRequest,
  own: Session,
): Promise<OtherSessions> {
  const held = readSessionCookies(context, request).filter(({ sessionId }) => sessionId !== own.sessionId)
  const sessions = await listUsableSessions(context, held)
  const people = sessions.flatMap(({ sessionId }) => context.shownPatients.get(sessionId) ?? [])
  return { count: sessions.length, people }
}

/** The open sessions of the browser, the newest first. Reading their patients does not extend them. */
async function loadOpenSessions(
  context: AppContext,
  request: FastifyRequest,
): Promise<readonly OpenSession[]> {
  const sessions = await listUsableSessions(context, readSessionCookies(context, request))
  const loaded = await Promise.all(sessions.map(session => loadPatient(context, session, request.id)))
  return loaded.filter(({ patient }) => !isFailure(patient) || !hasEnded(patient))
}

/** The sessions that the auth server still accepts. A sign-out ends them there first. */
async function listUsableSessions(
  context: AppContext,
  held: readonly SessionCookie[],
): Promise<readonly Session[]> {
  const open = await listOpenSessions(context, context.store.db, held)
  const checked = await Promise.all(open.map(session => checkAccess(context, session)))
  return checked.flatMap(session => (isFailure(session) ? [] : [session]))
}

async function loadPatient(context: AppContext, session: Session, requestId: string): Promise<OpenSession> {
  const read = await queryApi(patientEndpoint, { context, session, requestId })
  if (isFailure(read)) return { session, patient: read }
  const patient = readPerson(read)
  context.shownPatients.set(session.sessionId, patient)
  return { session, patient }
}

function hasEnded({ reason }: SessionFailure): boolean {
  return reason === 'session-ended' || reason === 'token-refused'
}

/** `/`: the open sessions with their patients (SESSION-8). If all have ended it says so; without any it invites to launch. */
export async function renderOpenSessions(context: AppContext, request: FastifyRequest): Promise<StatePage> {
  const open = await loadOpenSessions(context, request)
  if (open.length > 0) return { status: 200, page: renderList(context, open) }
  return readSessionCookies(context, request).length > 0
    ? { status: 401, page: renderEndedPage(context, await findVisitor(context, request)) }
    : { status: 200, page: renderWelcomePage(context.settings) }
}

function renderList({ settings, clock }: AppContext, open: readonly OpenSession[]): Html {
  const audience: Audience = open[0] ? findAudience(open[0].session) : 'unknown'
  const one = audience === 'staff' ? 'patient' : 'record'
  const table = renderTable(
    {
      caption: 'Open sessions in this browser',
      kind: 'table--stack sessions',
      columns: [
        audience === 'staff' ? 'Patient' : 'Record',
        'Opened',
        'Ends',
        { head: 'Action', isHidden: true },
      ],
    },
    open.map(session => listCells(session, open)),
  )
  return renderAppPage(
    {
      title: 'Open sessions',
      bar: { kind: 'app', links: [linkHome(settings, audience)] },
      width: 'mid',
      scripts: ['session.js'],
    },
    html`${renderPageHead('Open sessions', html`As of ${renderMoment(clock(), { form: 'time' })}. Each session shows one ${one}, and stays open until it ends or you end it.`)}
<div class="stack"><section class="card card--clip" aria-label="Open sessions">${table}</section>
<p class="actions"><a class="btn btn--quiet" href="/launch">Choose another ${one}</a></p></div>`,
  )
}

function listCells({ session, patient }: OpenSession, open: readonly OpenSession[]) {
  const path = getSessionPath(session)
  const name = isFailure(patient) ? html`${nameFailure(patient)}` : renderName(patient.name)
  const isSimilar = !isFailure(patient) && findAlike(patient, listPeople(open)).length > 0
  const who = isFailure(patient) ? `FHIR id ${session.patientId}` : describePerson(patient)
  return [
    html`<a data-session-id="${session.sessionId}" href="${path}">${name}</a>${isSimilar && html`&ensp;${renderBadge('Similar name', 'warn')}`}<span class="sub">${who}</span>${hasSeveralUsers(open) && html`<span class="sub">Opened by ${nameUser(session)}</span>`}`,
    renderDateTime(session.createdAt),
    renderDateTime(session.endsAt),
    html`<form method="post" action="${path}/logout">${renderDanger(html`End session<span class="sr"> of ${name}</span>`, { size: 'small' })}</form>`,
  ]
}

/** Access that does not end with a sign-in stays open for the next user of the computer. */
function hasSeveralUsers(open: readonly OpenSession[]): boolean {
  return new Set(open.map(({ session }) => JSON.stringify([session.issuer, session.subject]))).size > 1
}

function nameUser({ name, fhirUser }: Session): string {
  return name ?? fhirUser ?? 'an unknown user'
}

function describePerson(person: Person): Html {
  const { label, value } = chooseRecordNumber(person)
  return html`Born ${renderDate(person.born)}, ${formatSex(person.gender)}, ${label} ${value}`
}

function listPeople(open: readonly OpenSession[]): readonly Person[] {
  return open.flatMap(({ patient }) => (isFailure(patient) ? [] : [patient]))
}
