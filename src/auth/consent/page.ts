import { dateHtml, type Html, html, type Person, page, patientBanner, timeText } from '../../web/index.ts'
import type { Client } from '../client/client.ts'
import { hasScope } from '../grant/grant.ts'
import { LIFETIME } from '../lifetimes.ts'
import type { Login } from '../login/login.ts'
import { paths } from '../paths.ts'
import { appName, appTile, hostOfAddress, unverifiedWarning } from '../portal/app-identity.ts'
import { type Asking, askingsOf } from './choices.ts'
import { kindOf, offeredTypes } from './kinds.ts'
import { verbsOf } from './meaning.ts'
import { fixedRow, readRow, row, type Ticked, writeRow } from './rows-html.ts'

export interface ConsentPageOptions {
  readonly client: Client
  readonly login: Login
  readonly interactionId: string
  /** What may be granted. */
  readonly scope: string
  /** What might be granted, had the client been registered for all that it asks for. */
  readonly wanted: string
  readonly redirectUri: string
  readonly sampleData: boolean
  /** Whose record it is about: nobody's, somebody's, or somebody's that cannot be read now. */
  readonly patient: { readonly id: string; readonly person: Person | undefined } | undefined
  /** Of a launch, or picked on the way here. */
  readonly encounterId: string | undefined
  readonly searchPermission: 'r' | 's'
  readonly accessTokenTtlSeconds: number
  /** Whether a patient was picked on the way here. */
  readonly picked: boolean
  readonly ticked: Ticked
  readonly now: number
}

/** Who asks, for what, until when; refusing is as easy as allowing (design: Who, what, until when). */
export function consentPage(options: ConsentPageOptions): Html {
  const { client, login, sampleData, picked, patient } = options
  const steps = picked ? ['Sign in', 'Patient', 'Access'] : ['Sign in', 'Access']
  const bar = { kind: 'flow', steps, current: steps.length - 1, width: 'mid' } as const
  const after = html`<div class="decide" role="region" aria-label="Your decision"><div class="wrap wrap--mid">
<button class="btn" form="consent" name="decision" value="allow">Allow access</button>
<button class="btn btn--quiet" form="consent" name="decision" value="deny">Don’t allow</button>
<p class="decide__note">Signed in as ${login.clinician.displayName}</p>
</div></div>`
  const use = patient ? ' to use this record' : ''
  return page(
    { title: `Allow ${client.name}`, bar, width: 'mid', sampleData, after },
    html`<div class="pagehead"><div><h1>Allow ${client.name}${use}?</h1>
<p class="pagehead__lead">The app at <b>${hostOfAddress(options.redirectUri)}</b> asks for what is listed below. Untick what it should not have.</p></div></div>
${unverifiedWarning(client)}
${patientHtml(options)}
<div class="consent">${formHtml(options)}${aboutHtml(options)}</div>`,
  )
}

function patientHtml({ patient, now }: ConsentPageOptions): Html | undefined {
  if (!patient) return undefined
  const { person, id } = patient
  return html`<section class="card card--clip card--band consent__patient" aria-label="Patient">${
    person
      ? patientBanner(person, { now, heading: 'p' })
      : html`<div class="patient"><div class="patient__in"><p class="patient__name">Name cannot be read now</p><dl class="facts"><div><dt>FHIR id</dt><dd>${id}</dd></div></dl></div></div>`
  }</section>`
}

function formHtml(options: ConsentPageOptions): Html {
  const { interactionId, login, scope, patient, encounterId, ticked } = options
  const askings = askingsOf(scope)
  const writes = askings.filter(asking => asking.writes)
  return html`<form class="consent__ask" id="consent" method="post" action="${paths.consent}">
<input type="hidden" name="interaction" value="${interactionId}">
<input type="hidden" name="clinician" value="${login.clinician.id}">
<input type="hidden" name="patient" value="${patient?.id}">
<input type="hidden" name="encounter" value="${encounterId}">
${readSections(options, askings)}
${writes.length > 0 && section('write', writeHeading(writes), html`${writes.map(asking => writeRow(asking, ticked))}`)}
${section('stay', 'When you are away', stayRow(options))}
</form>`
}

/** One section for each way of reading; who the user is stands in the first. */
function readSections(
  { searchPermission, scope, login, ticked }: ConsentPageOptions,
  askings: readonly Asking[],
) {
  const reads = askings.filter(asking => !asking.writes)
  const byVerbs = Map.groupBy(reads, asking => verbsOf(asking.scope.permissions, searchPermission))
  const identity = identityRow(scope, login)
  if (byVerbs.size === 0) return identity && section('read0', 'Read', identity)
  return [...byVerbs].map(([verbs, some], at) =>
    section(`read${at}`, verbs, html`${some.map(asking => readRow(asking, ticked))}${at === 0 && identity}`),
  )
}

function section(id: string, heading: string, rows: Html): Html {
  return html`<section aria-labelledby="s-${id}"><h2 class="section__title" id="s-${id}">${heading}</h2><ul class="card scopes">${rows}</ul></section>`
}

function identityRow(scope: string, { clinician }: Login): Html | undefined {
  const told = hasScope(scope, 'fhirUser') || hasScope(scope, 'profile')
  if (told)
    return fixedRow(
      'Your name and staff identity',
      'Always shared',
      `So that the app knows who is using it: ${clinician.displayName}.`,
    )
  return hasScope(scope, 'openid')
    ? fixedRow('That it is you', 'Always shared', 'A number that stands for you, without your name.')
    : undefined
}

function writeHeading(writes: readonly Asking[]): string {
  return verbsOf(new Set(writes.flatMap(({ scope }) => [...scope.permissions])), 's').replace(' and ', ' or ')
}

function stayRow({ scope, wanted, login, accessTokenTtlSeconds, ticked }: ConsentPageOptions): Html {
  const latest = timeText(login.createdAt + LIFETIME.login)
  const minutes = Math.ceil(accessTokenTtlSeconds / 60)
  const otherwise = hasScope(scope, 'online_access')
    ? `its access ends when you sign out, and at ${latest} at the latest.`
    : `its access ends after ${minutes === 1 ? '1 minute' : `${minutes} minutes`}.`
  if (!hasScope(scope, 'offline_access') && hasScope(wanted, 'offline_access'))
    return fixedRow(
      'No access without you',
      'Not registered',
      `The app asked for it, and is not registered for it: ${otherwise}`,
    )
  if (!hasScope(scope, 'offline_access'))
    return fixedRow('No access without you', 'Not asked for', `It was not asked for: ${otherwise}`)
  return row(
    {
      value: 'offline_access',
      title: 'Keep access',
      text: `The app can use what is ticked above without you, until you remove it under Apps with access. Without this, ${otherwise}`,
    },
    ticked,
  )
}

function aboutHtml({ client, redirectUri, scope, wanted }: ConsentPageOptions): Html {
  const unregistered = notRegistered(scope, wanted)
  const missing = notAsked(wanted)
  return html`<aside aria-labelledby="s-app"><h2 class="section__title" id="s-app">About the app</h2>
<div class="card card__body stack">
<div class="appid">${appTile(client)}<p>${appName(client)}<span class="sub">${hostOfAddress(redirectUri)}</span></p></div>
${client.description !== undefined && html`<p>${client.description}</p>`}
<dl class="kv">
<div><dt>Goes back to</dt><dd><code>${redirectUri}</code></dd></div>
<div><dt>Client id</dt><dd><code>${client.id}</code></dd></div>
<div><dt>Registered</dt><dd>${dateHtml(client.createdAt)}</dd></div>
${unregistered !== '' && html`<div><dt>Asked for, and will not get: it is not registered for that</dt><dd>${unregistered}</dd></div>`}
${missing !== '' && html`<div><dt>Did not ask for</dt><dd>${missing}</dd></div>`}
</dl>
<details class="more"><summary>Exact scopes</summary><p class="url url--block">${scope}</p></details>
</div></aside>`
}

/** What the app asked for, and may not have. */
function notRegistered(scope: string, wanted: string): string {
  const granted = typesOf(scope)
  const missing = [...typesOf(wanted)].filter(type => !granted.has(type))
  return listedTitles(
    missing.map(type => (type === '*' ? 'Everything else in the record' : kindOf(type).title)),
  )
}

/** What a clinician might expect to be asked for, and is not. */
function notAsked(wanted: string): string {
  const types = typesOf(wanted)
  if (types.has('*')) return ''
  const titles = offeredTypes
    .slice(0, 12)
    .filter(type => !types.has(type))
    .map(type => kindOf(type).title)
  return listedTitles(titles.slice(0, 6))
}

function typesOf(scope: string): ReadonlySet<string> {
  return new Set(askingsOf(scope).map(asking => asking.scope.type))
}

function listedTitles(titles: readonly string[]): string {
  return titles.map((title, at) => (at === 0 ? title : title.toLowerCase())).join(', ')
}
