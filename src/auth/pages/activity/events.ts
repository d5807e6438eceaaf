import { formatRepeats, type KeptRecord } from '../../../audit/index.ts'
import type { Claims } from '../../../jwt/index.ts'
import { PORTAL_CLIENT } from '../../../smart/index.ts'
import { formatTime, type Html, html, renderBadge, renderFacts, renderMoment } from '../../../web/ui/index.ts'
import { readDetails } from '../../base/audit.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { renderResult } from '../parts/audit-result.ts'
import { renderComparisons } from '../parts/explain/compare.ts'
import {
  describeApp,
  describeDecision,
  describeOrigin,
  type KnownNames,
  type LaunchGroup,
  nameKind,
} from '../parts/explain/describe.ts'
import { type Advice, adviseOn, findClaimedLaunch } from '../parts/explain/explain.ts'
import type { FoundProblem } from './problems.ts'
import { type ActivityView, buildUrl } from './view.ts'

export interface EventsOptions extends Pick<AuthContext, 'explainRequest' | 'hooks'> {
  readonly view: ActivityView
  readonly names: KnownNames
  /** The page that changes an app. */
  readonly changeApp: ((id: string) => string | undefined) | undefined
  /** How often a problem occurred. Undefined for an event among those of its launch. */
  readonly times?: number
}

/** Renders a launch with its events. The script recognizes both by `data-key`. */
export function renderGroup(group: LaunchGroup, options: EventsOptions): Html {
  const { title, launch, events, key } = group
  const { view } = options
  return html`<section class="card card--clip run" data-key="${key}" aria-label="${title}, ${formatTime(events[0]?.at, { seconds: true, withZone: true, ...UTC })}, event ${events[0]?.id}">
<div class="run__head"><h2>${title}</h2> ${isOfAssistant(group) && renderBadge('Assistant')} ${renderNote(group, options)}
<p class="run__facts">${renderGroupFacts(group, options)}</p>
${launch !== undefined && view.launch === undefined && html`<a class="run__only" href="${buildUrl(view, { launch, reference: undefined, before: undefined })}">Only this launch</a>`}</div>
<ol class="run__events">${events.map(event => renderEvent(event, group, options))}</ol>
</section>`
}

/** Renders distinct problems, newest first, each with its explanation. */
export function renderProblems(problems: readonly FoundProblem[], options: EventsOptions): Html {
  return html`<section class="card card--clip run" data-key="problems" aria-label="Problems">
<div class="run__head"><h2>Problems</h2>
<p class="run__facts"><span>Newest first</span> <span>Equal ones are shown once</span></p></div>
<ol class="run__events">${problems.map(({ record, group, times }) => renderEvent(record, group, { ...options, times }))}</ol>
</section>`
}

/** Whether an assistant made the requests of a launch by its tools. */
function isOfAssistant({ launch, events }: LaunchGroup): boolean {
  return launch !== undefined && events.some(({ details }) => readDetails(details).tool !== undefined)
}

/** Events without a launch have nothing in common: each has a badge of its own. */
function renderNote({ launch, first, events }: LaunchGroup, { hooks }: EventsOptions): Html | undefined {
  if (launch === undefined) return undefined
  const note = [...first, ...events]
    .map(record => hooks?.explainRecord(record))
    .find(found => found !== undefined)
  return note && renderBadge(note.details, 'warn')
}

function renderGroupFacts(group: LaunchGroup, { names, hooks }: EventsOptions): Html {
  const { first, events, launch } = group
  const all = [...first, ...events]
  const patient = launch && all.find(({ patient_id }) => patient_id !== null)?.patient_id
  const subject = launch && all.find(record => record.subject !== null)?.subject
  const user = subject && names.user(subject)
  const refused = events.filter(({ allowed }) => !allowed).length
  const facts = [
    describeOrigin(group, hooks),
    patient && html`Patient: <code>${patient}</code>`,
    user && html`User: <bdi>${user}</bdi>`,
    renderMoment(events[0]?.at ?? 0, { form: 'date', ...UTC }),
    `${events.length} ${events.length === 1 ? 'event' : 'events'}${refused > 0 ? `, ${refused} refused` : ''}`,
  ]
  return html`${facts.filter(fact => fact).map(fact => html`<span>${fact}</span> `)}`
}

function renderEvent(record: KeptRecord, group: LaunchGroup, options: EventsOptions): Html {
  const { id, allowed } = record
  const isFound = isReferred(record, options)
  const advice = adviseOn(record, group, options)
  return html`<li class="event${!allowed && ' event--refused'}${isFound && ' event--found'}" data-key="${id}">
<details class="event__line"${isFound && html` open`}><summary>${renderLine(record, advice, options)}</summary>
<div class="event__body">${renderBody(record, options)}</div></details>
${advice && renderAdvice(advice, record, options)}</li>`
}

function isReferred({ request_id }: KeptRecord, { view: { reference } }: EventsOptions): boolean {
  return reference !== undefined && request_id === reference
}

function renderLine(
  record: KeptRecord,
  advice: Advice | undefined,
  { names, hooks, times }: EventsOptions,
): Html {
  const { scope, title, why } = describeDecision(record, names, hooks)
  const note = hooks?.explainRecord(record)
  const { tool } = readDetails(record.details)
  // A search of another patient finds nothing, and the response does not say why.
  const isOfOthers = advice && record.kind === 'fhir' && record.allowed
  const decidedBy = scope === undefined ? title : html`<code>${insertBreaks(scope)}</code>`
  return html`<span class="event__time">${times !== undefined && html`${renderMoment(record.at, { form: 'date', ...UTC })}<br>`}${renderMoment(record.at, { form: 'milliseconds', ...UTC })}</span>
<span class="event__result">${renderResult(record)} <span class="event__status">${record.status}</span></span>
<span class="event__what">${renderWhat(record)}${tool !== undefined && html` ${renderBadge(`Tool ${tool}`)}`}${namesApp(record, times) && html` <span class="muted">${describeApp(record, names)}</span>`}${times !== undefined && times > 1 && html` ${renderBadge(`${times} times`)}`}</span>
<span class="event__why">${decidedBy !== undefined && html`<span class="event__by">${decidedBy}</span> `}${isOfOthers ? advice.cause : why}${note && html` ${renderBadge(note.badge, 'warn')}`}</span>`
}

/** Whether nothing else names the app of a record. */
function namesApp({ launch_id, client_id }: KeptRecord, times: number | undefined): boolean {
  const isAlone = launch_id === null || times !== undefined
  return isAlone && client_id !== null && client_id !== PORTAL_CLIENT
}

/** A count stands for several requests, possibly with different URLs. */
function renderWhat(record: KeptRecord): Html {
  const { kind, method, request, repeats } = record
  if (repeats !== null) return html`${nameKind(record)}: ${formatRepeats(repeats)}, within a minute`
  if (kind !== 'fhir') return html`<b>${nameKind(record)}</b>`
  return html`<code><b>${method ?? ''}</b> ${insertBreaks(request ?? '')}</code>`
}

// Without scripts, the page names UTC.
const UTC = { zone: 'UTC' } as const

/** Allows line breaks between the parts of a URL. */
function insertBreaks(url: string): Html | string {
  if (url === '') return 'the base'
  return html`${url.split(/(?=[?&])|(?<=\/)/).map((part, at) => html`${at > 0 && html`<wbr>`}${part}`)}`
}

function renderAdvice({ cause, action, scope }: Advice, record: KeptRecord, options: EventsOptions): Html {
  const { launch_id: launch } = record
  const { view, times } = options
  const isProblem = times !== undefined
  const isOpen = isProblem || isReferred(record, options)
  return html`<details class="more event__explain"${isOpen && html` open`}><summary>Explain this</summary>
<div class="event__advice"><p>${cause}</p>
<p><b>What to do:</b> ${action}</p>
${scope !== undefined && html`<p>Scopes of the token: <code>${scope}</code></p>`}
${isProblem && launch !== null && html`<p><a href="${buildUrl(view, { launch, result: 'all' })}">Show its launch</a></p>`}</div></details>`
}

function renderBody(record: KeptRecord, options: EventsOptions): Html {
  const { detail, compared = [], claims = {} } = readDetails(record.details)
  return html`${compared.length > 0 && renderComparisons(compared)}
${renderFacts(listFacts(record, detail, options), 'kv--table')}
${Object.entries(claims).map(([name, values]) => renderClaims(name, values, record.decided_by))}`
}

function listFacts(
  record: KeptRecord,
  detail: string | undefined,
  { names, changeApp, hooks, view }: EventsOptions,
): readonly (readonly [string, Html | string])[] {
  const { at, reason, decided_by, patient_id, subject, client_id, launch_id, request_id } = record
  const details = readDetails(record.details)
  const claimed = hooks && findClaimedLaunch(details)
  const facts: readonly (readonly [string, Html | string | null | undefined])[] = [
    ['Time', renderMoment(at, { form: 'seconds', ...UTC })],
    ['Reason', reason],
    ['Exact reason', detail],
    [record.kind === 'fhir' ? 'Decided by' : 'Scopes', decided_by && html`<code>${decided_by}</code>`],
    ['Tool', details.tool && html`<code>${details.tool}</code>`],
    ['App', client_id && renderApp(client_id, names.app(client_id), changeApp)],
    ['User', subject && (names.user(subject) ?? subject)],
    ['Patient', patient_id && html`<code>${patient_id}</code>`],
    ['Launch', launch_id && html`<code>${launch_id}</code>`],
    [
      'Claimed launch',
      claimed &&
        html`<a href="${buildUrl(view, { launch: claimed, result: 'all', reference: undefined })}"><code>${claimed}</code></a> (not verified)`,
    ],
    ['Reported by', details.reportedBy && html`<code>${details.reportedBy}</code>`],
    ['Reference', request_id && html`<code>${request_id}</code>`],
  ]
  return facts.flatMap(([label, value]) => (value ? [[label, value] as const] : []))
}

function renderApp(id: string, name: string | undefined, changeApp: EventsOptions['changeApp']): Html {
  const href = name === undefined ? undefined : changeApp?.(id)
  return html`${name !== undefined && name !== id && html`${name} `}<code>${id}</code>${href !== undefined && html` <a href="${href}">Change this app</a>`}`
}

const CLAIM_TITLES: Readonly<Record<string, string>> = {
  access_token: 'Claims of the access token',
  id_token: 'Claims of the ID token',
  response: 'Introspection response',
}

/** The scopes are those of the record. */
function renderClaims(name: string, claims: Claims, scope: string | null): Html {
  const all = name === 'id_token' || scope === null ? claims : { ...claims, scope }
  return html`<h3>${CLAIM_TITLES[name] ?? name}</h3>
${renderFacts(
  Object.entries(all).map(([claim, value]) => [claim, html`<code>${formatClaim(claim, value)}</code>`]),
  'kv--table',
)}`
}

const TIMES: ReadonlySet<string> = new Set(['iat', 'exp', 'auth_time', 'nbf'])

function formatClaim(claim: string, value: unknown): string {
  if (TIMES.has(claim) && typeof value === 'number')
    return `${value} (${new Date(value * 1000).toISOString().slice(0, -5)}Z)`
  return typeof value === 'string' ? value : JSON.stringify(value)
}
