import { formatTime, type Html, html, renderBadge, renderDate } from '../../../../web/ui/index.ts'
import { joinWithAnd } from '../../../words/scopes.ts'
import type { WhoseRecord } from '../whose.ts'
import type { Actors } from './actors.ts'
import type { AccessRecord } from './people.ts'
import type { AccessLogView } from './view.ts'
import { classify, isOfAdministration, isOfPatientUser, type Visit } from './visits.ts'
import { describeLists, describeVisit } from './words.ts'

/** Visits as rows: when, who, what. */
export function renderVisits(visits: readonly Visit[], options: VisitOptions, withDay = false): Html {
  return html`<ul class="visits">${visits.map(visit => renderVisit(visit, options, withDay))}</ul>`
}

interface VisitOptions {
  readonly actors: Actors
  readonly whose: WhoseRecord
  readonly view: Pick<AccessLogView, 'zone'>
}

function renderVisit(visit: Visit, { actors, whose, view: { zone } }: VisitOptions, withDay: boolean): Html {
  const { name, detail } = actors.describe(visit[0])
  return html`<li class="visit"><p class="visit__when">${withDay && html`${renderDate(visit[0].at, zone)} `}${formatPeriod(visit, zone, withDay)}</p>
<p class="visit__who"><b>${name}</b>${detail !== undefined && html`<span class="sub">${detail}</span>`}</p>
<p class="visit__what">${renderWhat(visit, { actors, whose })}</p></li>`
}

/** What a person did, and with which app. With several apps, what they did with each. */
function renderWhat(visit: Visit, { actors, whose }: Pick<VisitOptions, 'actors' | 'whose'>): Html {
  const isList = classify(visit[0]) === 'list'
  const isChanged = visit.some(record => classify(record) === 'changed')
  const badge = isChanged && html` ${renderBadge('Changed the record', 'warn')}`
  const apps = listApps(visit, actors)
  if (!isList && apps.length > 1) {
    const parts = describeByApp(visit, { actors, whose })
    return html`${parts.map(text => html`<span class="visit__part">${text}</span>`)}${badge}`
  }
  return html`${isList ? describeLists(visit) : describeVisit(visit, { actors, whose })}${badge}${apps.length > 0 && html`<span class="sub">With ${joinWithAnd(apps)}</span>`}`
}

/** Sentences such as "With Heart Tracker: looked at your goals.", the first app first. */
export function describeByApp(
  visit: Visit,
  { actors, whose }: Pick<VisitOptions, 'actors' | 'whose'>,
): readonly string[] {
  const byMeans = Map.groupBy(visit, record => nameMeans(record, actors))
  return [...byMeans].toReversed().flatMap(([means, [newest, ...earlier]]) => {
    if (!newest) return []
    const what = describeVisit([newest, ...earlier], { actors, whose })
    if (means === undefined) return what
    return `With ${means}: ${what.slice(0, 1).toLowerCase()}${what.slice(1)}`
  })
}

/** The apps that a person used. An app that acts for itself is the actor. */
export function listApps(visit: Visit, actors: Actors): readonly string[] {
  const isOfPerson = (record: AccessRecord) =>
    !isOfPatientUser(record) && !isOfAdministration(record) && record.subject !== record.client_id
  return [...new Set(visit.filter(isOfPerson).flatMap(record => nameMeans(record, actors) ?? []))]
}

function nameMeans(record: AccessRecord, actors: Actors): string | undefined {
  const { client_id } = record
  return client_id === null ? undefined : actors.nameMeans({ ...record, client_id })
}

function formatPeriod(visit: Visit, zone: string, withZone: boolean): string {
  const from = formatTime(visit.at(-1)?.at, { zone })
  const to = formatTime(visit[0].at, { zone })
  const end = formatTime(visit[0].at, { zone, withZone })
  return from === to ? end : `${from}–${end}`
}
