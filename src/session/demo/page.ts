import {
  alert,
  countdown,
  dateTimeHtml,
  endsSoon,
  type Html,
  html,
  nameText,
  page,
  personOf,
  timeText,
} from '../../web/index.ts'
import { isSampleData } from '../places.ts'
import type { Visit } from '../records/visit.ts'
import { bannerOf, namelessBanner, printedPatient } from './banner.ts'
import { conditionsCard } from './conditions-card.ts'
import type { DemoRecord } from './load-record.ts'
import { medicinesCard } from './medicines-card.ts'
import { pressureCard } from './pressure-card.ts'
import { sessionCard } from './session-card.ts'

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
      sampleData: isSampleData(context.settings),
      scripts: ['session.js'],
      after: printLine(now, who),
    },
    html`${liveParts(session.sessionId)}
${endsSoon(session.endsAt, now) && endAlert(session.endsAt)}
${!session.needPatientBanner && unbanneredHead(record)}
<div class="appgrid">
<div class="stack">${conditionsCard(record.conditions)}${medicinesCard(record.medications)}</div>
<div class="stack">${pressureCard(record.vitals, now)}${sessionCard(session, me)}</div>
</div>`,
  )
}

function banner(session: Visit['session'], { patient }: DemoRecord, now: number): { banner?: Html } {
  if (!session.needPatientBanner) return {}
  return {
    banner: patient.ok ? bannerOf(patient.value, session, now) : namelessBanner(patient.failure, session),
  }
}

/** The EHR around the app shows who the patient is (CL-26); paper has no EHR around it. */
function unbanneredHead({ patient }: DemoRecord): Html {
  return html`<h1 class="sr">Summary</h1>${patient.ok && printedPatient(patient.value)}`
}

/** A page that was loaded just now ends soon only because the session's maximum is near: it cannot be extended. */
function endAlert(endsAt: number): Html {
  return alert(
    `Your session ends at ${timeText(endsAt)}.`,
    'To work longer, launch the app again from the patient list.',
    'warn',
  )
}

/** What the script shows when it learns something (assets/session.js). Without a script they stay hidden. */
function liveParts(sessionId: string): Html {
  return html`<div id="session" data-session-id="${sessionId}" data-zone="${new Intl.DateTimeFormat().resolvedOptions().timeZone}">
<div id="session-soon" role="status" hidden>${alert('Your session ends soon.', html`<a href="/" id="session-keep">Keep working</a> to stay signed in.`, 'warn')}</div>
<div id="session-replaced" hidden>${alert('Another launch has replaced this one.', html`This page is closed, so that no two patients are mixed up. <a href="/">Show the patient who is open now</a>`, 'warn')}</div>
</div>`
}

function printLine(now: number, who: string | undefined): Html {
  return html`<p class="print wrap">Printed ${dateTimeHtml(now)}${who !== undefined && ` by ${who}`} from the Sallyport demo app. Not the full record.</p>`
}
