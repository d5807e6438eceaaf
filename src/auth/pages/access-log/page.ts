import {
  findDayStart,
  formatDate,
  type Html,
  html,
  renderDate,
  renderEmptyState,
  renderHidden,
  renderPageHead,
  renderSelect,
} from '../../../web/ui/index.ts'
import { paths } from '../../base/paths.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { Login } from '../../users/find-login.ts'
import type { Actors } from '../parts/access-log/actors.ts'
import type { AccessLog } from '../parts/access-log/read.ts'
import { type AccessLogView, buildUrl, type DayFault, isNarrowed } from '../parts/access-log/view.ts'
import { renderVisits } from '../parts/access-log/visit-rows.ts'
import { ACCESS_KINDS, type Day, type Visit } from '../parts/access-log/visits.ts'
import { renderAsk, renderSignedInPage } from '../parts/page-parts.ts'
import { describeRelation, formatFullName, type WhoseRecord } from '../parts/whose.ts'

export function renderAccessLogPage(context: AuthContext, login: Login, log: AccessLog): Html {
  const { people, view, whose, older, fault } = log
  const days = fault ? [] : log.days
  const title = `Who looked at ${whose.isOwn ? 'my record' : whose.record}`
  const now = context.clock()
  return renderSignedInPage(
    context,
    login,
    { title, current: 'access-log', people },
    html`${renderPageHead(
      title,
      `Everyone who opened or changed ${whose.record} through this server, by day. Days and times are in the zone ${view.zone}.`,
    )}
${people.length > 1 && renderRecords(log)}
${renderFilters(log)}
${fault ? undefined : days.length === 0 ? renderNobody(log) : days.map(day => renderDay(day, { ...log, now }))}
<div class="actions after">${older !== undefined && !fault && html`<a class="btn btn--quiet" href="${buildUrl({ ...view, before: older })}">Show older entries</a>`}${
      view.before !== undefined &&
      html`<a class="btn btn--quiet" href="${buildUrl({ ...view, before: undefined })}">Back to the newest</a>`
    }${days.length > 0 && renderDownloads(view)}</div>
<section class="card card__body stack after" aria-labelledby="s-ask"><h2 id="s-ask">Questions about an entry?</h2>
${renderAsk(context)}
${MEANING}</section>`,
  )
}

const MEANING = html`<details class="more"><summary>What the entries mean</summary><ul class="bullets">
<li><b>Opened the record</b>: a person or an app asked for data of this record. One entry is one visit, which may be many requests.</li>
<li><b>Changed the record</b>: something was added, changed or removed.</li>
<li><b>Appeared in a list</b>: the name was among those of other patients, for example in a search by staff. The record was not opened.</li>
<li><b>Checked in the administration</b>: an administrator or auditor looked up the person or an account, and did not open the record.</li>
<li>Refused attempts are not shown, because they revealed nothing. Data that the server reads for itself, for example to find out who may open the record, is not shown either: no person sees that data.</li>
</ul></details>`

function renderRecords({ people, records, view }: AccessLog): Html {
  return html`<nav class="subnav" aria-label="Records"><ul>${people.map(
    person =>
      html`<li><a href="${buildUrl({ patient: person.id })}"${person.id === view.patient && html` aria-current="page"`}>${formatFullName(person)} (${describeRelation(records, person.id).toLowerCase()})</a></li>`,
  )}</ul></nav>`
}

function renderFilters({ view, choices, people, fault }: AccessLog): Html {
  const { kind, app, person, since, until } = view
  const isOne = (values: readonly unknown[], chosen: string | undefined) =>
    values.length < 2 && chosen === undefined
  const isOpen = isNarrowed(view) || fault !== undefined
  return html`<details class="more narrow"${isOpen && html` open`}><summary>Filter the entries</summary><form class="narrow__form" method="get" action="${paths.accountAccessLog}" aria-label="Filters">
${people.length > 1 && renderHidden({ patient: view.patient })}
${!isOne(choices.people, person) && renderSelect({ name: 'person', label: 'Person', all: 'Everyone' }, choices.people, person)}
${!isOne(choices.apps, app) && renderSelect({ name: 'app', label: 'App', all: 'All apps' }, choices.apps, app)}
${renderSelect({ name: 'kind', label: 'Kind', all: 'All kinds' }, Object.entries(ACCESS_KINDS), kind)}
${renderDayField('since', 'From', since, fault)}
${renderDayField('until', 'To', until, fault)}
<p class="narrow__act"><button class="btn btn--quiet">Show</button>${isNarrowed(view) && html` <a class="btn btn--quiet" href="${buildUrl({ patient: view.patient })}">Show all</a>`}</p>
</form></details>`
}

function renderDayField(
  name: DayFault['field'],
  label: string,
  value: string | undefined,
  fault: DayFault | undefined,
): Html {
  const error = fault?.field === name ? fault.text : undefined
  const state = error !== undefined && html` aria-invalid="true" aria-describedby="${name}-error" autofocus`
  return html`<div class="field"><label class="field__label" for="${name}">${label}</label><input class="input" type="date" id="${name}" name="${name}" value="${value}"${state}>${
    error !== undefined && html`<p class="field__error" id="${name}-error">${error}</p>`
  }</div>`
}

function renderNobody({ view, older, searchedTo, whose }: AccessLog): Html {
  if (!isNarrowed(view) && view.before === undefined)
    return html`<div class="card">${renderEmptyState({
      title: `Nobody has looked at ${whose.record} yet`,
      text: 'An entry appears here when a person or an app opens it.',
    })}</div>`
  const isSearched = older !== undefined && searchedTo !== undefined
  return html`<div class="card">${renderEmptyState({
    title: isSearched ? `Nothing found back to ${formatDate(searchedTo, view.zone)}` : 'Nothing found',
    text: isSearched
      ? 'Older entries may match: show them below.'
      : 'No entry matches these filters. Choose others, or show all entries.',
  })}</div>`
}

interface DayOptions {
  readonly actors: Actors
  readonly whose: WhoseRecord
  readonly view: Pick<AccessLogView, 'kind' | 'zone'>
  readonly now: number
}

function renderDay(day: Day, options: DayOptions): Html {
  const { start, visits, lists } = day
  const id = `day-${start}`
  return html`<section class="day" aria-labelledby="${id}"><h2 class="section__title" id="${id}">${nameDay(start, options)}${renderDate(start, options.view.zone)}</h2>
<div class="card">${visits.length > 0 && renderVisits(visits, options)}${
    lists.length > 0 &&
    html`<details class="more visits__lists"${(visits.length === 0 || options.view.kind === 'list') && html` open`}><summary>${
      visits.length === 0 && options.view.kind === undefined ? 'Nobody opened the record. It a' : 'A'
    }ppeared in ${countLists(lists)}</summary>${renderVisits(lists, options)}</details>`
  }</div></section>`
}

/** One search of a person may be several requests. */
function countLists({ length }: readonly Visit[]): string {
  return length === 1 ? 'a list' : `lists, ${length} times`
}

function nameDay(start: number, { now, view: { zone } }: DayOptions): string {
  if (start === findDayStart(now, zone)) return 'Today, '
  if (start === findDayStart(now, zone, -1)) return 'Yesterday, '
  return `${new Date(start).toLocaleDateString('en-GB', { weekday: 'long', timeZone: zone })}, `
}

function renderDownloads(view: AccessLogView): Html {
  const chosen = { ...view, before: undefined }
  return html`<span class="push">Download: <a href="${buildUrl(chosen, paths.accountAccessLogCsv)}" download>table (CSV)</a> or <a href="${buildUrl(chosen, paths.accountAccessLogJson)}" download>JSON</a></span>`
}
