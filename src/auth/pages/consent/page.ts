import { parseScopes } from '../../../smart/index.ts'
import {
  type Person,
  renderAlikeWarning,
  renderName,
  renderPatientBanner,
} from '../../../web/person/index.ts'
import {
  type Brand,
  type Html,
  html,
  renderAlert,
  renderDate,
  renderFacts,
  renderHidden,
  renderMoment,
  renderPage,
  renderPageHead,
} from '../../../web/ui/index.ts'
import { LIFETIME } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { isPatientUser } from '../../base/user.ts'
import {
  type ConsentItem,
  isLimitedByReading,
  listConsentItems,
} from '../../oauth/authorize/consent-items.ts'
import type { Client } from '../../oauth/clients/client.ts'
import { hasScope } from '../../oauth/grants/grant.ts'
import { ScopeIndex } from '../../oauth/grants/narrow.ts'
import type { Login } from '../../users/find-login.ts'
import { OFFERED_TYPES } from '../../words/offered.ts'
import { describeKind, describePermissions, describeReading } from '../../words/scopes.ts'
import { readHost, renderAppName, renderAppTile, renderUnverifiedWarning } from '../parts/apps.ts'
import { renderBack } from '../parts/page-parts.ts'
import { buildPickUrl } from '../parts/pick-url.ts'
import { describeWhose } from '../parts/whose.ts'
import { type IsChecked, renderFixedRow, renderReadRow, renderRow, renderWriteRow } from './rows.ts'

export interface ConsentPageOptions {
  readonly client: Client
  readonly login: Login
  readonly pendingId: string
  readonly scope: string
  /** The scopes that could be granted if the client were registered for all requested ones. */
  readonly wanted: string
  readonly redirectUri: string
  readonly brand: Brand
  readonly sampleData: boolean
  /** `person` is undefined if the record cannot be read now. */
  readonly patient: ConsentPatient | undefined
  readonly encounterId: string | undefined
  readonly searchPermission: 'r' | 's'
  readonly accessTokenTtlSeconds: number
  readonly offlineAccessMaxDays: number
  /** Of an agent: how long its access lasts, and the scopes that it already has for the record. */
  readonly agent: { readonly minutes: number; readonly may: string } | undefined
  /** Whether the user has just picked the patient. */
  readonly picked: boolean
  /** Whether the user can go back and choose somebody else. */
  readonly hasChoice: boolean
  readonly isChecked: IsChecked
  /** Whether the user allowed access, but cleared every row. */
  readonly selectedNothing: boolean
  readonly now: number
  readonly scripts: readonly string[]
}

interface ConsentPatient {
  readonly id: string
  readonly person: Person | undefined
  /** Patients with similar names. */
  readonly alike: readonly Person[]
}

/** Shows the app, the requested access and its end. Refusing is as easy as allowing. */
export function renderConsentPage(options: ConsentPageOptions): Html {
  const { client, login, brand, sampleData, picked, patient } = options
  const choice = isPatientUser(login.user) ? 'Record' : 'Patient'
  const steps = picked ? ['Sign in', choice, 'Access'] : ['Sign in', 'Access']
  const bar = { kind: 'flow', steps, current: steps.length - 1, width: 'mid' } as const
  const after = html`<div class="decide" role="region" aria-label="Your decision"><div class="wrap wrap--mid">
<button class="btn" form="consent" name="decision" value="allow">Allow access</button>
<button class="btn btn--quiet" form="consent" name="decision" value="deny">Don’t allow</button>
<p class="decide__note">${renderIncluded(options)}Signed in as ${login.user.displayName}</p>
</div></div>`
  const whose = patient && describeWhoseRecord(login, patient)
  const use = whose === undefined ? '' : ` to use ${whose}`
  return renderPage(
    { title: `Allow ${client.name}`, brand, bar, width: 'mid', sampleData, after, scripts: options.scripts },
    html`${options.hasChoice && renderBack(buildPickUrl(options.pendingId), `Choose another ${isPatientUser(login.user) ? 'person' : 'patient'}`)}
${renderPageHead(`Allow ${client.name}${use}?`, html`The ${options.agent ? 'assistant' : 'app'} at <b>${readHost(options.redirectUri)}</b> requests the access below. ${describeChoice(options)}`)}
${options.selectedNothing && renderAlert('Nothing is selected.', 'Select what the app may use, or choose “Don’t allow”. Nothing has been shared yet.', 'bad')}
${renderUnverifiedWarning(client, options.redirectUri)}
${options.agent && renderAgent(options, options.agent)}
${renderPatient(options)}
<div class="consent">${renderForm(options)}${renderAbout(options)}</div>`,
  )
}

/** What an assistant asks for, in one sentence, and what is added to the access that it has. */
function renderAgent(
  { scope, patient }: ConsentPageOptions,
  { minutes, may }: NonNullable<ConsentPageOptions['agent']>,
): Html {
  const whose = patient?.person ? renderName(patient.person.name) : 'the patient'
  const duration = minutes === 1 ? '1 minute' : `${minutes} minutes`
  const isWriting = listConsentItems(scope).some(item => item.writes)
  const change = isWriting
    ? 'It may propose changes that you sign, if you select that. It cannot change anything itself.'
    : 'It cannot change anything.'
  const reads = describeReading(scope)
  const before = describeReading(may)
  const added = describeReading(listAdded(scope, may))
  const sentence = html`may read ${reads === '' ? 'nothing' : reads} of ${whose} for ${duration}. ${change}`
  return html`${renderAlert('This assistant', sentence)}
${before !== '' && renderAlert('It asks for more.', `It already may read ${before}. ${added === '' ? 'It asks for no other kind of data.' : `This adds ${added}.`}`, 'warn')}`
}

function listAdded(scope: string, may: string): string {
  const known = new ScopeIndex(parseScopes(may))
  return parseScopes(scope)
    .filter(one => !known.covers(one))
    .map(({ text }) => text)
    .join(' ')
}

/** Patients and relatives, and everybody for an assistant, select themselves what goes beyond reading now. */
function describeChoice({ login, scope, agent }: ConsentPageOptions): string {
  const clear = 'Clear anything that it should not have.'
  if (!isPatientUser(login.user) && !agent) return clear
  const isWriting = listConsentItems(scope).some(item => item.writes)
  const more = [
    ...(isWriting ? [agent ? 'propose changes' : 'change the record'] : []),
    ...(hasScope(scope, 'offline_access') ? ['keep access while you are away'] : []),
  ]
  return more.length === 0 ? clear : `${clear} It may ${more.join(' or ')} only if you select that.`
}

/** What goes beyond reading now. It may be far up the page, so it is repeated beside the button. CSS follows the checkboxes. */
function renderIncluded({ agent, scope }: ConsentPageOptions): Html | undefined {
  const writes = listConsentItems(scope).filter(item => item.writes)
  const staysToo = hasScope(scope, 'offline_access')
  if (writes.length === 0 && !staysToo) return undefined
  const what = agent ? 'propose changes that you sign' : `${describeWrites(writes).toLowerCase()} entries`
  return html`${writes.length > 0 && html`<span class="decide__writes">${agent ? 'The assistant' : 'The app'} may ${what}. </span>`}${
    staysToo && html`<span class="decide__stays">It keeps access while you are away. </span>`
  }`
}

/** Patients and relatives read whose record it is. Clinicians see it in the banner. */
function describeWhoseRecord({ user }: Login, { id, person }: ConsentPatient): string {
  return isPatientUser(user) ? describeWhose(user, person ? [person] : [], id).record : 'this record'
}

function renderPatient({ patient, login, now }: ConsentPageOptions): Html | undefined {
  if (!patient) return undefined
  const isForPatients = isPatientUser(login.user)
  const { person, id, alike } = patient
  return html`<section class="card card--clip card--band consent__patient" aria-label="Patient">${
    person
      ? renderPatientBanner(person, { now, heading: 'p', isForPatients })
      : html`<div class="patient"><div class="patient__in"><p class="patient__name">Name temporarily unavailable</p>${!isForPatients && html`<dl class="facts"><div><dt>FHIR id</dt><dd>${id}</dd></div></dl>`}</div></div>`
  }${person && renderAlikeWarning(person, alike, isForPatients)}</section>`
}

/**
 * Enter in a checkbox activates the first submit button of a form. This one does nothing: a form outside of a dialog ignores
 * the method `dialog` (HTML, form submission). Chromium skips a disabled button, WebKit one that is not rendered.
 */
const NO_IMPLICIT_SUBMISSION = html`<button class="sr" formmethod="dialog" tabindex="-1" aria-hidden="true"></button>`

function renderForm(options: ConsentPageOptions): Html {
  const { pendingId, login, scope, patient, encounterId, isChecked } = options
  const isAgent = options.agent !== undefined
  const items = listConsentItems(scope)
  const writes = items.filter(item => item.writes)
  return html`<form class="consent__ask" id="consent" method="post" action="${paths.consent}">
${NO_IMPLICIT_SUBMISSION}
${renderHidden({ interaction: pendingId, clinician: login.user.id, patient: patient?.id ?? '', encounter: encounterId ?? '' })}
${renderReadSections(options, items)}
${writes.length > 0 && renderSection('write', isAgent ? 'Propose changes that you sign' : describeWrites(writes), html`${writes.map(item => renderWriteRow(item, isChecked, { isAgent, isOptional: isPatientUser(login.user), isLimitedByReading: isLimitedByReading(item, items) }))}`)}
${renderSection('stay', 'When you are away', renderOfflineRow(options))}
</form>`
}

/** One section per set of permissions. The user's identity is in the first one. */
function renderReadSections(
  { searchPermission, scope, login, isChecked }: ConsentPageOptions,
  items: readonly ConsentItem[],
) {
  const reads = items.filter(item => !item.writes)
  const byVerbs = Map.groupBy(reads, item => describePermissions(item.scope.permissions, searchPermission))
  const identity = renderIdentityRow(scope, login)
  if (byVerbs.size === 0) return identity && renderSection('read0', 'Read', identity)
  return [...byVerbs].map(([verbs, ofVerbs], at) =>
    renderSection(
      `read${at}`,
      verbs,
      html`${ofVerbs.map(item => renderReadRow(item, isChecked))}${at === 0 && identity}`,
    ),
  )
}

function renderSection(id: string, heading: string, rows: Html): Html {
  return html`<section aria-labelledby="s-${id}"><h2 class="section__title" id="s-${id}">${heading}</h2><ul class="card scopes">${rows}</ul></section>`
}

function renderIdentityRow(scope: string, { user }: Login): Html | undefined {
  if (hasScope(scope, 'fhirUser') || hasScope(scope, 'profile'))
    return renderFixedRow(
      isPatientUser(user) ? 'Your name and identity' : 'Your name and staff identity',
      'Always shared',
      `Tells the app who is using it: ${user.displayName}.`,
    )
  return hasScope(scope, 'openid')
    ? renderFixedRow('Your user id', 'Always shared', 'An identifier without your name.')
    : undefined
}

function describeWrites(writes: readonly ConsentItem[]): string {
  return describePermissions(new Set(writes.flatMap(({ scope }) => [...scope.permissions])), 's').replace(
    ' and ',
    ' or ',
  )
}

function renderOfflineRow(options: ConsentPageOptions): Html {
  const { scope, wanted, login, accessTokenTtlSeconds, offlineAccessMaxDays, isChecked } = options
  const latest = renderMoment(login.createdAt + LIFETIME.login, { form: 'time' })
  const minutes = options.agent?.minutes ?? Math.ceil(accessTokenTtlSeconds / 60)
  const otherwise =
    !options.agent && hasScope(scope, 'online_access')
      ? html`its access ends when you sign out, and at ${latest} at the latest.`
      : `its access ends after ${minutes === 1 ? '1 minute' : `${minutes} minutes`}.`
  if (!hasScope(scope, 'offline_access')) {
    const [state, why] = hasScope(wanted, 'offline_access')
      ? ['Not registered', 'The app requested it but is not registered for it']
      : ['Not requested', 'The app did not request it']
    return renderFixedRow('No access without you', state, html`${why}: ${otherwise}`)
  }
  const without = isPatientUser(login.user)
    ? html`If you leave this out, ${otherwise} The app then asks you again.`
    : html`Otherwise, ${otherwise}`
  return renderRow(
    {
      value: 'offline_access',
      title: 'Keep access',
      text: html`The app can use the access selected above while you are signed out, until you end it under Apps with access${describeMaximum(offlineAccessMaxDays)}. ${without}`,
    },
    isChecked,
  )
}

function describeMaximum(days: number): string {
  if (days === 0) return ''
  return `, and for ${days === 1 ? '1 day' : `${days} days`} at most`
}

function renderAbout(options: ConsentPageOptions): Html {
  const { client, redirectUri, scope, wanted } = options
  const technical: readonly (readonly [string, Html | string])[] = [
    ['Returns to', html`<code>${redirectUri}</code>`],
    ['Client id', html`<code>${client.id}</code>`],
    ['Scopes', html`<span class="url url--block">${scope}</span>`],
  ]
  const facts: readonly (readonly [string, Html | string])[] = [
    ['Registered', describeRegistration(client)],
    ['Website of the maker', renderPageLink(client, client.websiteUrl) ?? 'Not stated'],
    [
      'Privacy notice',
      renderPageLink(client, client.policyUrl) ??
        'Not stated. Ask the maker what happens to the data that the app reads.',
    ],
    ['Terms of service', renderPageLink(client, client.termsUrl) ?? ''],
    ['Contact', client.contacts.join(', ')],
    ['Requested but not registered for', listUnregistered(scope, wanted)],
    ['Not requested', listNotRequested(wanted)],
  ]
  return html`<aside aria-labelledby="s-app"><h2 class="section__title" id="s-app">About the app</h2>
<div class="card card__body stack">
<div class="appid">${renderAppTile(client)}<p>${renderAppName(client)}<span class="sub">${readHost(redirectUri)}</span></p></div>
${client.description !== undefined && html`<p>${client.description}</p>`}
${renderFacts(facts.filter(([, value]) => value !== ''))}
<details class="more"><summary>Details for developers</summary>${renderFacts(technical)}</details>
${renderDeveloperNote(options)}
</div></aside>`
}

function describeRegistration({ approved, createdAt }: Client): Html {
  return approved
    ? html`${renderDate(createdAt)}. The hospital or practice registered or approved it.`
    : html`${renderDate(createdAt)}, by the app itself. The hospital or practice has not checked it.`
}

/** A page of the maker, in a new tab, so that the decision is not lost. It is named by its host, which nobody can invent. */
function renderPageLink({ approved }: Client, url: string | undefined): Html | undefined {
  if (url === undefined) return undefined
  return html`<a href="${url}" target="_blank" rel="noopener noreferrer">${readHost(url)}<span class="sr">, in a new tab</span></a>${!approved && ' (not checked)'}`
}

/** Consent is asked at every launch (0125). Whoever launches an own app again and again can do it without this page. */
function renderDeveloperNote({
  agent,
  client,
  login,
  patient,
  encounterId,
}: ConsentPageOptions): Html | undefined {
  if (!login.developerPages || agent || !patient || isPatientUser(login.user)) return undefined
  const { href, text } = login.developerPages.linkWithoutConsent({
    client: client.id,
    patient: patient.id,
    encounter: encounterId,
  })
  return html`<p class="small muted">For developers: this page is shown at every launch. <a href="${href}">${text}</a>.</p>`
}

function listUnregistered(scope: string, wanted: string): string {
  const granted = listTypes(scope)
  const missing = [...listTypes(wanted)].filter(type => !granted.has(type))
  return joinTitles(
    missing.map(type => (type === '*' ? 'Everything else in the record' : describeKind(type).title)),
  )
}

/** Common kinds of data that the app did not request. */
function listNotRequested(wanted: string): string {
  const types = listTypes(wanted)
  if (types.has('*')) return ''
  const titles = OFFERED_TYPES.slice(0, 12)
    .filter(type => !types.has(type))
    .map(type => describeKind(type).title)
  return joinTitles(titles.slice(0, 6))
}

function listTypes(scope: string): ReadonlySet<string> {
  return new Set(listConsentItems(scope).map(item => item.scope.type))
}

function joinTitles(titles: readonly string[]): string {
  return titles.map((title, at) => (at === 0 ? title : title.toLowerCase())).join(', ')
}
