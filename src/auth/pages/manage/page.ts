import { type Person, renderName } from '../../../web/person/index.ts'
import {
  type Html,
  html,
  renderAlert,
  renderBadge,
  renderDanger,
  renderDate,
  renderDateTime,
  renderEmptyState,
  renderFacts,
  renderHidden,
  renderPageHead,
  renderTable,
} from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { type AuthUser, findOwnPatient, isPatientUser, opensRecords } from '../../base/user.ts'
import type { Client } from '../../oauth/clients/client.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { Login } from '../../users/find-login.ts'
import { summarizeScopes } from '../../words/scopes.ts'
import type { AppAccess } from '../parts/app-access.ts'
import { differsByRecord } from '../parts/app-access.ts'
import { buildRemovalUrl, renderRemoval } from '../parts/app-removal.ts'
import { HOSPITAL_APP, renderAppIdentity, renderListedApp, renderPatientApp } from '../parts/apps.ts'
import { renderSignedInPage } from '../parts/page-parts.ts'
import { renderPermissions } from '../parts/permissions.ts'
import { describeWhose, formatFullName } from '../parts/whose.ts'
import { type OwnExports, renderOwnExports } from './exports.ts'
import type { GrantEnd, GrantHistory } from './history.ts'

/** Patients by id: undefined if the user may not see the patient, absent if that could not be read now. */
export type KnownPatientNames = ReadonlyMap<string, Person | undefined>

interface ManageView {
  readonly access: readonly AppAccess[]
  readonly names: KnownPatientNames
  /** The app whose access the user has just ended, and the record if it was that of one. */
  readonly removed: { readonly client: Client; readonly patient: string | undefined } | undefined
  /** Of a patient or relative. */
  readonly history: GrantHistory | undefined
  readonly exports: OwnExports
  /** The user has just ended one. */
  readonly hasEndedExport: boolean
}

export function renderManagePage(context: AuthContext, login: Login, view: ManageView): Html {
  const { access, names, removed, history, exports, hasEndedExport } = view
  const offline = access.filter(({ isOffline }) => isOffline).length
  return renderSignedInPage(
    context,
    login,
    { title: 'Apps with access', current: 'manage', people: listPeople(names) },
    html`${renderPageHead(
      'Apps with access',
      html`${isPatientUser(login.user) ? 'Apps that may use a health record on your behalf.' : 'Apps that use patient records on your behalf.'}${offline > 0 && ` ${describeCount(offline)} access while you are away.`}`,
    )}
${removed && html`<div role="status">${renderAlert('Access ended.', `${removed.client.name} can no longer use ${removed.patient === undefined ? 'any record' : describeRecord(login, names, removed.patient)} on your behalf.`, 'ok')}</div>`}
${hasEndedExport && html`<div role="status">${renderAlert('Export ended.', 'Its files cannot be downloaded any more.', 'ok')}</div>`}
<div class="card${access.length > 0 && ' card--clip'}">${access.length === 0 ? renderEmpty(login) : renderAccess(login, view)}</div>
${access.length > 0 && html`<p class="small muted after">When you end the access of an app, its requests are refused within seconds. The app keeps the data that it has already read.</p>`}
${renderOwnExports(exports)}
${history && renderHistory(login, history, names)}`,
  )
}

/** Apps that the user allowed and whose access has ended. */
function renderHistory(login: Login, { past, older }: GrantHistory, names: KnownPatientNames): Html {
  return html`<section class="after" id="earlier" aria-labelledby="s-earlier"><h2 class="section__title" id="s-earlier">Access that has ended</h2>
<div class="card${past.length > 0 && ' card--clip'}">${
    past.length === 0
      ? html`<p class="card__body muted">${older === undefined ? 'No access of an app that you allowed has ended yet.' : 'All of these apps still have access.'}</p>`
      : renderTable(
          {
            caption: 'Access that has ended, most recently allowed first',
            kind: 'table--top table--stack',
            columns: [
              'App',
              'For',
              { head: 'Allowed', isNowrap: true },
              { head: 'Ended', isNowrap: true },
              'How it ended',
            ],
          },
          past.map(one => [
            html`<b>${one.app}</b>${one.isOfHospital && html`<span class="sub">${HOSPITAL_APP}</span>`}`,
            one.patient === undefined ? 'No particular record' : renderPatient(login, one.patient, names),
            renderDateTime(one.allowedAt),
            renderDateTime(one.endedAt),
            ENDS[one.end],
          ]),
        )
  }</div>
${older !== undefined && html`<div class="actions after"><a class="btn btn--quiet" href="${`${paths.manage}?before=${older}#earlier`}">Show older entries</a></div>`}</section>`
}

const ENDS: Readonly<Record<GrantEnd, string>> = {
  user: 'You ended it',
  app: 'The app ended it',
  misuse: 'Ended for safety: a code or token that works only once was used twice',
  hospital: 'The hospital or practice ended it',
  'sign-out': 'You signed out',
  password: 'You changed your password',
  expired: 'It expired',
}

/** Asks for confirmation, for one record or for all of the app. */
export function renderRemovePage(
  context: AuthContext,
  login: Login,
  access: AppAccess,
  { names, patient }: { readonly names: KnownPatientNames; readonly patient: string | undefined },
): Html {
  const { client, patients } = access
  const scope = (patient === undefined ? undefined : access.scopeOf.get(patient)) ?? access.scope
  const record = patient === undefined ? undefined : describeRecord(login, names, patient)
  const heading = `End ${client.name}’s access${record === undefined ? '' : ` to ${record}`}?`
  const others = patient === undefined || patients === 'every' ? 0 : patients.length - 1
  return renderSignedInPage(
    context,
    login,
    { title: `End access of ${client.name}`, current: 'manage', width: 'flow' },
    html`${renderPageHead(
      heading,
      `Its requests${record === undefined ? '' : ` for ${record}`} will be refused.${others === 0 ? '' : ` It also keeps its access to ${others === 1 ? 'another record' : `${others} other records`}.`}`,
    )}
<form class="card card__body stack" method="post" action="${buildRemovalUrl(client, patient)}">
${renderHidden({ client: client.id, patient })}
<div>${renderAppIdentity(client)}</div>
${renderFacts([
  ['Permissions', patient === undefined && differsByRecord(access) ? SEE_RECORDS : summarizeScopes(scope)],
  patient === undefined
    ? ['Records', renderPatients(login, access, names, true)]
    : ['Record', renderPatient(login, patient, names)],
])}
<p>${describeAfterwards(login, client)}</p>
<div class="actions">${renderDanger(patient === undefined && patients.length > 1 && patients !== 'every' ? `End access to ${patients.length === 2 ? 'both' : `all ${patients.length}`} records` : 'End access')}<a class="btn btn--quiet" href="${paths.manage}">Cancel</a></div>
</form>`,
  )
}

function describeAfterwards({ user }: Login, { firstParty }: Client): string {
  if (!isPatientUser(user))
    return 'You can open the app again later, from the patient list or from the app itself. It keeps the data that it has already read.'
  const again = firstParty ? '' : '; it then asks you again'
  return `You can open the app again later${again}. Data that it has copied stays there: ask its makers to delete it.`
}

function describeRecord({ user }: Login, names: KnownPatientNames, patient: string): string {
  return describeWhose(user, listPeople(names), patient).record
}

function listPeople(names: KnownPatientNames): readonly Person[] {
  return [...names.values()].filter(person => person !== undefined)
}

function describeCount(offline: number): string {
  return offline === 1 ? 'One of them keeps' : `${offline} of them keep`
}

function renderEmpty({ user }: Login): Html {
  return renderEmptyState({
    title: 'No app has access',
    text: `An app appears here after you ${isPatientUser(user) ? 'open' : 'launch'} it or allow it to use a record.`,
    ...(!isPatientUser(user) &&
      opensRecords(user) && { action: { href: paths.portal, text: 'Go to patients' } }),
  })
}

function renderAccess(login: Login, { access, names }: ManageView): Html {
  return renderTable(
    {
      caption: 'Apps with access, most recently used first',
      kind: 'table--top table--stack apps',
      columns: [
        'App',
        'Permissions',
        'Records',
        { head: 'Last used', isNowrap: true },
        'Access ends',
        { head: 'Action', isHidden: true },
      ],
    },
    access.map(one => [
      isPatientUser(login.user) ? renderPatientApp(one.client, one) : renderListedApp(one.client, one),
      renderPermissions(one.client, one.scope, {
        summary: differsByRecord(one) ? SEE_RECORDS : undefined,
        details: isPatientUser(login.user) ? 'Details for developers' : undefined,
      }),
      renderPatients(login, one, names),
      renderDateTime(one.lastUsedAt),
      html`<span class="nowrap">${one.endsAt === undefined ? 'When you end it' : renderDateTime(one.endsAt)}</span>${one.isOffline && html` ${renderBadge('Works while you are away', 'warn')}`}`,
      renderRemoval(one.client),
    ]),
  )
}

const SEE_RECORDS = 'Different for each record'

/** The records of an app. Patients and relatives can end the access to each of several. */
function renderPatients(login: Login, access: AppAccess, names: KnownPatientNames, isOpen = false): Html {
  const { client, patients, scopeOf } = access
  if (patients === 'every') return html`All you may see`
  if (patients.length === 0) return html`None`
  const [only] = patients
  if (only !== undefined && patients.length === 1) return renderPatient(login, only, names)
  const isOwn = isPatientUser(login.user)
  const differs = differsByRecord(access)
  const listed = patients.slice(0, LIMITS.patientsListed)
  const others = patients.length - listed.length
  return html`<details class="more"${(isOpen || isOwn || differs) && html` open`}><summary>${patients.length} records<span class="sr"> of ${client.name}</span></summary><ul${(isOwn || differs) && html` class="apps__records"`}>${listed.map(
    id =>
      html`<li>${renderPatient(login, id, names)}${differs && html`<span class="sub">${summarizeScopes(scopeOf.get(id) ?? '')}</span>`}${isOwn && renderRecordRemoval(client, id, names.get(id))}</li>`,
  )}${others > 0 && html`<li>${others === 1 ? '1 other' : `${others} others`}, used earlier</li>`}</ul></details>`
}

function renderRecordRemoval(client: Client, id: string, person: Person | undefined): Html {
  const name = person ? formatFullName(person) : 'somebody'
  const text = html`End for this record<span class="sr"> of ${name}: ${client.name}</span>`
  return renderDanger(text, { href: buildRemovalUrl(client, id), size: 'small' })
}

function renderPatient({ user }: Login, id: string, names: KnownPatientNames): Html {
  const person = names.get(id)
  if (!person) return isPatientUser(user) ? html`${explainNoName(user, id, names)}` : html`FHIR id ${id}`
  const born = html`Born ${renderDate(person.born)}`
  if (isPatientUser(user)) return html`${formatFullName(person)}<span class="sub">${born}</span>`
  return html`${renderName(person.name)}<span class="sub">${born}${person.mrn !== undefined && html`, <span class="number">MRN ${person.mrn}</span>`}</span>`
}

function explainNoName(user: AuthUser, id: string, names: KnownPatientNames): string {
  const hasEnded = names.has(id) && findOwnPatient(user) !== id
  return hasEnded ? 'You no longer act for this person' : 'Name temporarily unavailable'
}
