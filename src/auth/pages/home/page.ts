import { isFailure } from '../../../core/index.ts'
import type { Person } from '../../../web/person/index.ts'
import {
  type Html,
  html,
  renderAlert,
  renderBadge,
  renderDate,
  renderDateTime,
  renderPageHead,
} from '../../../web/ui/index.ts'
import type { Unavailable } from '../../base/fhir-reader.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { readParameters } from '../../base/request.ts'
import type { AuthUser } from '../../base/user.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { findPatientApps, type LaunchableApp } from '../../oauth/launch/apps.ts'
import { buildStandaloneUrl } from '../../oauth/launch/prepare.ts'
import type { Login } from '../../users/find-login.ts'
import { findOwnRecords, type OwnRecord } from '../../users/own-records.ts'
import { joinWithAnd, summarizeScopes } from '../../words/scopes.ts'
import { type Actors, findActors } from '../parts/access-log/actors.ts'
import { readDays, readPeople } from '../parts/access-log/read.ts'
import { type AccessLogView, buildUrl, readView } from '../parts/access-log/view.ts'
import { renderVisits } from '../parts/access-log/visit-rows.ts'
import type { Visit } from '../parts/access-log/visits.ts'
import { type AppAccess, differsByRecord, findAccess } from '../parts/app-access.ts'
import { renderRemoval } from '../parts/app-removal.ts'
import { renderPatientApp } from '../parts/apps.ts'
import { renderAsk, renderSignedInPage } from '../parts/page-parts.ts'
import { describeRelation, describeWhose, formatFullName, type WhoseRecord } from '../parts/whose.ts'
import { findGrantsOfOthers, type GrantsOfOthers, renderGrantsOfOthers } from './others.ts'
import { findRepresentatives, renderRepresentatives } from './representatives.ts'

/** What a patient or relative sees first. */
export interface Home {
  readonly access: readonly AppAccess[]
  /** Apps that the user can open. */
  readonly apps: readonly LaunchableApp[]
  readonly records: readonly OpenRecord[] | Unavailable
  /** Records that are not shown. */
  readonly others: number
}

/** A record that the user may open, and who opened it last. */
interface OpenRecord {
  readonly whose: WhoseRecord
  readonly relation: string
  readonly person: Person | undefined
  readonly view: AccessLogView
  readonly visits: readonly Visit[]
  readonly actors: Actors
  readonly ofOthers: GrantsOfOthers
  readonly representatives: Awaited<ReturnType<typeof findRepresentatives>>
}

export async function readHome(context: AuthContext, user: AuthUser, zone: string): Promise<Home> {
  const [own, access, apps] = await Promise.all([
    findOwnRecords(context, user),
    findAccess(context, user.id),
    findPatientApps(context),
  ])
  if (isFailure(own)) return { access, apps, records: own, others: 0 }
  const ids = own.map(({ patientId }) => patientId)
  const shown = ids.slice(0, LIMITS.homeRecords)
  const people = await readPeople(context, user, shown)
  const records = await Promise.all(shown.map(id => readRecord(context, user, { people, own, zone }, id)))
  return { access, apps, records, others: ids.length - shown.length }
}

async function readRecord(
  context: AuthContext,
  user: AuthUser,
  {
    people,
    own,
    zone,
  }: { readonly people: readonly Person[]; readonly own: readonly OwnRecord[]; readonly zone: string },
  patient: string,
): Promise<OpenRecord> {
  const view = readView(readParameters({}), [patient], zone)
  const { days } = await readDays(context, user, view, { withoutOwn: true })
  const visits = days.flatMap(day => day.visits).slice(0, LIMITS.homeVisits)
  return {
    whose: describeWhose(user, people, patient),
    relation: describeRelation(own, patient),
    person: people.find(({ id }) => id === patient),
    view,
    visits,
    actors: await findActors(context, user.id, visits.flat()),
    ofOthers: await findGrantsOfOthers(context, user, patient),
    representatives: await findRepresentatives(context, user, patient),
  }
}

export function renderHomePage(context: AuthContext, login: Login, home: Home): Html {
  const { records } = home
  const people = isFailure(records) ? [] : records.flatMap(({ person }) => person ?? [])
  return renderSignedInPage(
    context,
    login,
    { title: 'Start', current: 'home', people },
    html`${renderPageHead(
      'Your start page',
      html`You are signed in as <b>${login.user.displayName}</b>. Here you decide which apps you let use ${describeRecords(home)}, and see which apps other people use for ${isOne(home) ? 'it' : 'them'} and who looked at ${isOne(home) ? 'it' : 'them'}.`,
    )}
<div class="home"><div class="stack">
${isFailure(records) ? UNREACHABLE : records.length === 0 ? NO_RECORD : html`${records.length >= MANY && renderContents(home, records)}${records.map(renderRecord)}${ABOUT_OTHERS}`}
${home.others > 0 && html`<p><a href="${paths.accountAccessLog}">${home.others === 1 ? 'One more record' : `${home.others} more records`}</a></p>`}
${renderApps(home)}
</div><div class="stack">
${hasRecord(home) && home.apps.length > 0 && renderOpenable(context, home)}
${renderPossible(context, home)}
${renderCard('ask', 'Questions?', html`<div class="home__part">${renderAsk(context)}</div>`)}
</div></div>`,
  )
}

function hasRecord({ records }: Home): boolean {
  return !isFailure(records) && records.length > 0
}

function isOne({ records }: Home): boolean {
  return !isFailure(records) && records.length === 1
}

function describeRecords({ records }: Home): string {
  if (isFailure(records)) return 'the records you have access to'
  const names = records.map(({ whose }) => whose.record)
  return names.length === 1 ? (names[0] ?? '') : 'the records below'
}

const UNREACHABLE = renderAlert(
  'Health records cannot be reached now.',
  'Try again later. The apps with access are still listed.',
  'warn',
)

const NO_RECORD = renderAlert(
  'Your account opens no record.',
  'The connection to a record may have ended. Ask the people named under “Questions?”.',
  'warn',
)

/** About every record. */
const ABOUT_OTHERS = html`<p class="small muted">Everyone who may act for a person can open that person’s record, as you can, with apps that they choose. You cannot end the access of those apps here. If somebody should not be able to open a record, ask the people named under “Questions?”. Staff may also use apps that open many records. Each record that they open is listed under “Who looked”.</p>`

/** So many records fill several screens of a phone. */
const MANY = 3

/** Leads to the parts of a long page. */
function renderContents(home: Home, records: readonly OpenRecord[]): Html {
  const parts = [
    ...(home.apps.length > 0 ? [['s-open', 'Open an app']] : []),
    ['s-apps', 'Apps with access'],
    ...records.map(record => [makeRecordId(record), nameRecord(record)]),
  ]
  return html`<nav class="card card__body stack" aria-label="On this page"><p class="field__label">On this page</p><ul class="bullets">${parts.map(
    ([id, name]) => html`<li><a href="#${id}">${name}</a></li>`,
  )}</ul></nav>`
}

function makeRecordId({ whose }: OpenRecord): string {
  return `record-${whose.patient}`
}

function nameRecord({ person }: OpenRecord): string {
  return person ? formatFullName(person) : 'Name temporarily unavailable'
}

function renderRecord(record: OpenRecord): Html {
  const { whose, relation, person, view, visits, actors, ofOthers, representatives } = record
  const name = nameRecord(record)
  const id = makeRecordId(record)
  const log = buildUrl({ patient: whose.patient })
  return html`<section class="card card--clip" aria-labelledby="${id}">
<div class="card__head"><div><h2 id="${id}">${name}</h2>${person?.born !== undefined && html`<span class="sub">Born ${renderDate(person.born)}</span>`}</div>${renderBadge(whose.isOwn ? 'Your own record' : relation, 'accent')}</div>
<h3 class="home__part field__label">Who else looked last</h3>
${
  visits.length === 0
    ? html`<p class="home__part muted">Nobody else has opened ${whose.record} lately.</p>`
    : renderVisits(visits, { actors, whose, view }, true)
}
<p class="home__part"><a href="${log}">Everyone who looked at ${whose.record}</a>, including you and the apps that you allowed</p>
${renderGrantsOfOthers(ofOthers)}
${renderRepresentatives(representatives, whose)}
</section>`
}

function renderApps({ access, records }: Home): Html {
  const names = new Map(isFailure(records) ? [] : records.map(({ whose }) => [whose.patient, whose.record]))
  return renderCard(
    'apps',
    'Apps with access',
    access.length === 0
      ? html`<p class="home__part">No app that you allowed has access now. When you allow an app to use a record, it is listed here, and you can end its access at any time.</p>`
      : html`<ul class="visits">${access.slice(0, LIMITS.appsListed).map(one => renderApp(one, names))}</ul>
<p class="home__part"><a href="${paths.manage}">${access.length > LIMITS.appsListed ? `All ${access.length} apps with access` : 'Details of these apps'}</a></p>`,
  )
}

function renderCard(id: string, title: string, body: Html): Html {
  return html`<section class="card card--clip" aria-labelledby="s-${id}"><div class="card__head"><h2 id="s-${id}">${title}</h2></div>
${body}</section>`
}

function renderApp(access: AppAccess, names: ReadonlyMap<string, string>): Html {
  const { client, endsAt, isOffline } = access
  return html`<li class="home__app"><div>${renderPatientApp(client, access)}<span class="sub">${describeUse(access, names)} Until ${endsAt === undefined ? 'you end it' : renderDateTime(endsAt)}${isOffline && ', also while you are away'}.</span></div>
${renderRemoval(client)}</li>`
}

/** "May use my record. Reads conditions.", or, if they differ, "My record: reads conditions. The record of …: …". */
function describeUse(access: AppAccess, names: ReadonlyMap<string, string>): string {
  const { scope, patients, scopeOf } = access
  const nameRecord = (id: string) => names.get(id) ?? 'another record'
  if (patients === 'every') return `May use every record you may open. ${summarizeScopes(scope)}.`
  if (differsByRecord(access))
    return [...scopeOf]
      .map(([id, own]) => `May use ${nameRecord(id)}: ${startLower(summarizeScopes(own))}.`)
      .join(' ')
  const used = new Set(patients.map(nameRecord))
  return `${used.size > 0 ? `May use ${joinWithAnd([...used])}. ` : ''}${summarizeScopes(scope)}.`
}

function startLower(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1)
}

/** Links to apps, which start by themselves and come here for their access. */
function renderOpenable({ settings }: AuthContext, home: Home): Html {
  return renderCard(
    'open',
    'Open an app',
    html`<ul class="visits">${home.apps.map(
      ({ client, launchUrl }) =>
        html`<li class="home__app"><div>${renderPatientApp(client)}${client.description !== undefined && html`<span class="sub">${client.description}</span>`}</div>
<a class="btn btn--quiet btn--small" href="${buildStandaloneUrl(settings, client, launchUrl)}">Open<span class="sr"> ${client.name}</span></a></li>`,
    )}</ul><p class="home__part small muted">${describeOpening(home)}</p>`,
  )
}

function describeOpening(home: Home): string {
  const asksNothing = home.apps.some(({ client }) => client.firstParty)
  const what = asksNothing
    ? 'Apps of the hospital do not ask what they may use.'
    : 'It asks you what it may use.'
  return isOne(home) ? what : `${what} ${asksNothing ? 'All apps ask' : 'It also asks'} whose record to use.`
}

function renderPossible({ settings }: AuthContext, { apps }: Home): Html {
  return renderCard(
    'can',
    'What you can do here',
    html`<div class="home__part stack"><ul class="bullets">
<li><b>Use ${apps.length > 0 ? 'another' : 'an'} app</b>: open the app, choose to connect it to the hospital or practice, and sign in here when it asks. It asks you what it may use.</li>
<li><a href="${paths.manage}">End the access of an app</a>, at any time.</li>
<li><a href="${paths.accountAccessLog}">See who looked</a>, and download the list.</li>
<li>${settings.login.passwords ? html`<a href="${paths.accountPassword}">Change your password</a>, <a href="${paths.accountFactors}">set up two-step sign-in</a>, or ` : ''}<a href="${paths.accountSignIns}">see where you are signed in</a>.</li>
</ul><p class="small muted">The record itself is shown by the apps that you allow, not on these pages.</p></div>`,
  )
}
