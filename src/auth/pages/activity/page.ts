import type { Parties } from '../../../audit/index.ts'
import {
  type Choice,
  type Html,
  html,
  renderEmptyState,
  renderHidden,
  renderPageHead,
  renderSelect,
  renderZoneName,
} from '../../../web/ui/index.ts'
import { paths } from '../../base/paths.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { Login } from '../../users/find-login.ts'
import { renderAuditOff } from '../parts/audit-result.ts'
import { KINDS, type KnownNames, type LaunchGroup, nameApp } from '../parts/explain/describe.ts'
import { renderSignedInPage } from '../parts/page-parts.ts'
import { renderGroup, renderProblems } from './events.ts'
import type { FoundProblem } from './problems.ts'
import { type ActivityView, buildUrl, isNarrowed, showsPortal, TIMES } from './view.ts'

export interface ActivityPageOptions {
  readonly login: Login
  readonly view: ActivityView
  readonly groups: readonly LaunchGroup[]
  /** Shown instead of the groups. */
  readonly problems: readonly FoundProblem[]
  readonly names: KnownNames
  /** The apps and patients of the newest records. */
  readonly parties: Parties
  /** Of the last hour. Undefined if there are too many to count. */
  readonly counts:
    | { readonly allowed: number; readonly refused: number; readonly problems: number }
    | undefined
  /** Where older records follow. */
  readonly older: ActivityView['before']
  /** Whether the audit trail is on. */
  readonly kept: boolean
}

export function renderActivityPage(context: AuthContext, options: ActivityPageOptions): Html {
  const { settings, explainRequest, hooks } = context
  const { login, view, groups, problems, names } = options
  const isLive = !view.before && view.reference === undefined
  const changeApp = login.developerPages?.changeApp
  const shared = { view, names, explainRequest, hooks, changeApp }
  return renderSignedInPage(
    context,
    login,
    { title: 'Activity', current: 'activity', scripts: ['activity.js'] },
    html`${renderPageHead(
      'Activity',
      html`Every OAuth and FHIR request by launch, with the reason for each decision. Times are in the zone ${renderZoneName('UTC')}.`,
      html`<p class="base"><span>FHIR base</span> <span class="url">${settings.fhirBaseUrl}</span></p>`,
    )}
${renderFilters(options)}
<div id="activity" class="stack" data-live="${isLive ? 'on' : 'off'}">${groups.map(group => renderGroup(group, shared))}${
      problems.length > 0 && renderProblems(problems, shared)
    }${groups.length + problems.length === 0 && renderEmpty(options)}</div>
${renderOlderLink(options)}
<p class="small muted after">Search values that could name a person are hidden. Tokens, codes and secrets are never shown or stored here.</p>`,
  )
}

function renderFilters(options: ActivityPageOptions): Html {
  const { view, counts } = options
  return html`<div class="filters"><nav aria-label="Outcome"><ul class="tabs">
${renderTab(view, 'all', 'All', counts && counts.allowed + counts.refused)}${renderTab(view, 'allowed', 'Allowed', counts?.allowed)}${renderTab(view, 'refused', 'Refused', counts?.refused)}${renderTab(view, 'problems', 'Problems', counts?.problems)}
</ul></nav>
<p class="live live--still">${counts && html`<span>Counts for the last hour</span>`} <a class="btn btn--quiet btn--small" href="${buildUrl(view, { before: undefined })}">Refresh</a></p></div>
${renderPickers(options)}`
}

function renderTab(
  view: ActivityView,
  result: ActivityView['result'],
  text: string,
  count: number | undefined,
): Html {
  const current = view.result === result && html` aria-current="page"`
  return html`<li><a href="${buildUrl(view, { result, before: undefined, reference: undefined })}"${current}>${text}${count !== undefined && html` <span class="count">${count}</span>`}</a></li>`
}

function renderPickers({ view, names, parties }: ActivityPageOptions): Html {
  const apps = addChosen(parties.clients, view.app).map(id => [id, nameApp(id, names)] as const)
  const patients = addChosen(parties.patients, view.patient).map(id => [id, id] as const)
  const times = Object.entries(TIMES).map(([time, [text]]) => [time, text] as const)
  return html`<form class="narrow narrow__form" method="get" action="${paths.activity}">
${renderHidden({ result: view.result === 'all' ? undefined : view.result, launch: view.launch })}
${renderSelect({ name: 'app', label: 'App', all: 'All apps' }, apps.toSorted(compareText), view.app)}
${renderSelect({ name: 'patient', label: 'Patient', all: 'All patients' }, patients.toSorted(compareText), view.patient)}
${renderSelect({ name: 'kind', label: 'Kind', all: 'All kinds' }, Object.entries(KINDS), view.kind)}
${renderSelect({ name: 'time', label: 'Time', all: 'Any time' }, times, view.time)}
<p class="narrow__act"><label class="narrow__switch"><input type="checkbox" name="portal" value="1"${showsPortal(view) && html` checked`}> Requests of the pages of this server</label> <button class="btn btn--quiet btn--small">Show</button>${isNarrowed(view) && html` <a class="btn btn--quiet btn--small" href="${paths.activity}">Show all</a>`}</p>
</form>`
}

/** A chosen value stays in its picker, even if it is not among the newest. */
function addChosen(values: readonly string[], chosen: string | undefined): readonly string[] {
  return chosen === undefined || values.includes(chosen) ? values : [...values, chosen]
}

function compareText([, a]: Choice, [, b]: Choice): number {
  return a.localeCompare(b, 'en')
}

function renderEmpty({ view, kept }: ActivityPageOptions): Html {
  if (!kept) return renderAuditOff()
  if (view.result === 'problems')
    return renderEmptyState({
      title: 'No problems',
      text: 'No request that matches these filters was refused or failed, and every app got what it asked for.',
      action: { href: paths.activity, text: 'Show all events' },
    })
  if (isNarrowed(view))
    return renderEmptyState({
      ...(view.reference === undefined
        ? { title: 'No matching events', text: 'No event matches these filters.' }
        : {
            title: 'No event has this reference',
            text: 'The event is older than the oldest record that is kept, was not recorded, or was counted together with others like it. The log lines of the servers have the same reference.',
          }),
      action: { href: paths.activity, text: 'Show all events' },
    })
  return renderEmptyState({
    title: 'No events yet',
    text: 'Launch an app. Its OAuth and FHIR requests will appear here.',
    action: { href: paths.portal, text: 'Go to patients' },
  })
}

function renderOlderLink({ view, older }: ActivityPageOptions): Html | undefined {
  if (!older) return undefined
  return html`<p class="actions"><a class="btn btn--quiet" href="${buildUrl(view, { before: older })}">Show older events</a></p>`
}
