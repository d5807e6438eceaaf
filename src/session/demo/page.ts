import {
  alert,
  badge,
  countdown,
  dateTimeHtml,
  encounterTime,
  endsSoon,
  type Html,
  html,
  NOT_RECORDED,
  nameText,
  page,
  personOf,
} from '../../web/index.ts'
import { isSampleData } from '../portal-url.ts'
import type { Visit } from '../records/visit.ts'
import type { Session } from '../sessions/session.ts'
import { printedPatient, renderBanner, renderNamelessBanner } from './banner.ts'
import { describeFailure, renderCard } from './card.ts'
import { renderConditionsCard } from './conditions-card.ts'
import type { DemoRecord } from './load-record.ts'
import { renderMedicinesCard } from './medicines-card.ts'
import { renderPressureCard } from './pressure-card.ts'

/** The demo app's page: banner, conditions, medicines, blood pressure, session. */
export function recordPage({ context, session }: Visit, record: DemoRecord): Html {
  const now = context.clock()
  const { patient, me } = record
  const who = me.ok ? me.value.name : undefined
  const startedAt = Math.max(
    session.createdAt,
    session.endsAt - context.settings.app.sessionIdleSeconds * 1000,
  )
  return page(
    {
      title:
        patient.ok && session.needPatientBanner
          ? `${nameText(personOf(patient.value).name)}: summary`
          : 'Summary',
      site: 'Demo app',
      bar: {
        kind: 'app',
        countdown: countdown({ startedAt, endsAt: session.endsAt, now }),
        ...(who === undefined ? {} : { who }),
      },
      ...banner(session, record, now),
      sampleData: isSampleData(context.settings) && (!patient.ok || personOf(patient.value).sample === true),
      scripts: ['session.js'],
      after: printLine(now, who),
    },
    html`${liveParts(session, now)}
${!session.needPatientBanner && unbanneredHead(record)}
<div class="appgrid">
<div class="stack">${renderConditionsCard(record.conditions)}${renderMedicinesCard(record.medications)}</div>
<div class="stack">${renderPressureCard(record.vitals, now)}${renderSessionCard(session, record)}</div>
</div>`,
  )
}

function banner(session: Visit['session'], { patient }: DemoRecord, now: number): { banner?: Html } {
  if (!session.needPatientBanner) return {}
  return {
    banner: patient.ok
      ? renderBanner(patient.value, session, now)
      : renderNamelessBanner(patient.failure, session),
  }
}

/** The EHR around the app shows the patient banner (DEMO-2); a printed page has no EHR around it. */
function unbanneredHead({ patient }: DemoRecord): Html {
  return html`<h1 class="sr">Summary</h1>${patient.ok && printedPatient(patient.value)}`
}

/**
 * What is shown when the end is near, or another launch has taken over. A page that was loaded just now ends soon only
 * where no use can put the end off; the rest is the script's (assets/session.js) and stays hidden without it.
 */
function liveParts({ sessionId, endsAt, lastEndsAt }: Visit['session'], now: number): Html {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions()
  return html`<div id="session" data-session-id="${sessionId}" data-last-ends-at="${lastEndsAt}" data-zone="${timeZone}">
<div id="session-soon" role="status" hidden>${alert(
    'Your session ends soon.',
    html`<a href="/" id="session-keep">Keep working</a> to stay signed in.`,
    'warn',
  )}</div>
<div id="session-last" role="status"${!endsSoon(endsAt, now) && html` hidden`}>${alert(
    'Your session ends soon, and cannot be made longer.',
    'To go on after that, launch the app again from the patient list.',
    'warn',
  )}</div>
<div id="session-replaced" role="alert" hidden><h1>This page is closed</h1>${alert(
    'Another launch has replaced this one.',
    html`So that no two patients are mixed up, nothing is shown here. <a href="/">Show the patient who is open now</a>`,
    'warn',
  )}</div>
</div>`
}

function printLine(now: number, who: string | undefined): Html {
  return html`<p class="print wrap">Printed ${dateTimeHtml(now)}${who !== undefined && ` by ${who}`} from the Sallyport demo app. Not the full record.</p>`
}

/** Who, for which encounter, until when, with which scopes (design: Who, what, until when). */
function renderSessionCard(session: Session, { me, encounter }: Pick<DemoRecord, 'me' | 'encounter'>): Html {
  const profile = me.ok ? me.value : undefined
  const unknown = me.ok ? NOT_RECORDED : 'Not shared with this app'
  return renderCard(
    { id: 'h-session', title: 'Session' },
    html`<div class="card__body card__body--tight">
<dl class="kv kv--inline">
<div><dt>Signed in</dt><dd>${profile?.name ?? unknown}</dd></div>
<div><dt>Staff identity</dt><dd>${profile?.fhirUser === undefined ? unknown : html`<code>${profile.fhirUser}</code>`}</dd></div>
<div><dt>Encounter</dt><dd>${encounterHtml(encounter)}</dd></div>
<div><dt>Ends</dt><dd id="session-ends">${dateTimeHtml(session.endsAt)}</dd></div>
<div><dt>FHIR base</dt><dd><code>${session.fhirBaseUrl}</code></dd></div>
</dl>
<details class="more"><summary>Granted scopes</summary><p class="url url--block">${session.scope}</p></details>
${session.encounterId !== null && html`<details class="more"><summary>Encounter id</summary><p class="url url--block">${session.encounterId}</p></details>`}
<p class="small"><a href="/docs">Session API</a></p>
</div>`,
  )
}

/** What it is, when and how it stands; an id tells a clinician nothing. */
function encounterHtml(encounter: DemoRecord['encounter']): Html {
  if (!encounter) return html`None`
  if (!encounter.ok)
    return html`Chosen at the launch<span class="sub">${describeFailure(encounter.failure)}</span>`
  const { title, kind, status, inProgress } = encounter.value
  return html`${title}&ensp;${badge(status, inProgress ? 'accent' : undefined)}<span class="sub">${kind !== undefined && kind !== title && `${kind}, `}${encounterTime(encounter.value)}</span>`
}
