import {
  chooseRecordNumber,
  endsSoon,
  formatDate,
  formatEncounterTime,
  formatName,
  type Html,
  html,
  NOT_RECORDED,
  type Person,
  readPerson,
  renderAlert,
  renderBadge,
  renderCountdown,
  renderDateTime,
  renderPage,
  renderPatientBanner,
} from '../../web/index.ts'
import { isSampleData } from '../context.ts'
import type { Failure } from '../failure.ts'
import type { Patient, SessionRequest } from '../records/resources.ts'
import type { Session } from '../sessions/session.ts'
import { type Allergies, renderAllergies } from './allergies.ts'
import {
  describeFailure,
  renderCard,
  renderConditionsCard,
  renderMedicinesCard,
  renderPressureCard,
} from './cards.ts'
import type { DemoRecord } from './load-record.ts'

export function renderRecordPage({ context, session }: SessionRequest, record: DemoRecord): Html {
  const now = context.clock()
  const { patient, me } = record
  const who = me.ok ? me.value.name : undefined
  const startedAt = Math.max(
    session.createdAt,
    session.endsAt - context.settings.app.sessionIdleSeconds * 1000,
  )
  return renderPage(
    {
      title:
        patient.ok && session.needPatientBanner
          ? `${formatName(readPerson(patient.value).name)}: summary`
          : 'Summary',
      site: 'Demo app',
      bar: {
        kind: 'app',
        countdown: renderCountdown({ startedAt, endsAt: session.endsAt, now }),
        ...(who === undefined ? {} : { who }),
      },
      ...chooseBanner(session, record, now),
      sampleData:
        isSampleData(context.settings) && (!patient.ok || readPerson(patient.value).sample === true),
      scripts: ['session.js'],
      after: renderPrintLine(now, who),
    },
    html`${renderWarnings(session, now)}
${!session.needPatientBanner && renderPrintHead(record)}
<div class="appgrid">
<div class="stack">${renderConditionsCard(record.conditions)}${renderMedicinesCard(record.medications)}</div>
<div class="stack">${renderPressureCard(record.vitals, now)}${renderSessionCard(session, record)}</div>
</div>`,
  )
}

function chooseBanner(
  session: SessionRequest['session'],
  { patient, allergies }: DemoRecord,
  now: number,
): { banner?: Html } {
  if (!session.needPatientBanner) return {}
  return {
    banner: patient.ok
      ? renderBanner(patient.value, allergies, now)
      : renderNamelessBanner(patient.failure, session),
  }
}

/** The EHR shows the patient banner (DEMO-2), but a printed page has no EHR around it. */
function renderPrintHead({ patient }: DemoRecord): Html {
  return html`<h1 class="sr">Summary</h1>${patient.ok && renderPrintedPatient(patient.value)}`
}

/**
 * Warnings that the session ends soon or was replaced. A page that was just loaded warns only if the end cannot be
 * extended. The script (assets/session.js) shows the others.
 */
function renderWarnings({ sessionId, endsAt, lastEndsAt }: SessionRequest['session'], now: number): Html {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions()
  return html`<div id="session" data-session-id="${sessionId}" data-last-ends-at="${lastEndsAt}" data-zone="${timeZone}">
<div id="session-soon" role="status" hidden>${renderAlert(
    'Your session ends soon.',
    html`<a href="/" id="session-keep">Keep working</a> to stay signed in.`,
    'warn',
  )}</div>
<div id="session-last" role="status"${!endsSoon(endsAt, now) && html` hidden`}>${renderAlert(
    'Your session ends soon and cannot be extended.',
    'To continue after that, launch the app again from the patient list.',
    'warn',
  )}</div>
<div id="session-replaced" role="alert" hidden><h1>This page is closed</h1>${renderAlert(
    'Another launch has replaced this one.',
    html`To avoid mixing up two patients, this page shows nothing. <a href="/">Show the current patient</a>`,
    'warn',
  )}</div>
</div>`
}

function renderPrintLine(now: number, who: string | undefined): Html {
  return html`<p class="print wrap">Printed ${renderDateTime(now)}${who !== undefined && ` by ${who}`} from the Sallyport demo app. Not the full record.</p>`
}

function renderSessionCard(session: Session, { me, encounter }: Pick<DemoRecord, 'me' | 'encounter'>): Html {
  const profile = me.ok ? me.value : undefined
  const unknown = me.ok ? NOT_RECORDED : 'Not shared with this app'
  return renderCard(
    { id: 'h-session', title: 'Session' },
    html`<div class="card__body card__body--tight">
<dl class="kv kv--inline">
<div><dt>Signed in</dt><dd>${profile?.name ?? unknown}</dd></div>
<div><dt>Staff identity</dt><dd>${profile?.fhirUser === undefined ? unknown : html`<code>${profile.fhirUser}</code>`}</dd></div>
<div><dt>Encounter</dt><dd>${renderEncounter(encounter)}</dd></div>
<div><dt>Ends</dt><dd id="session-ends">${renderDateTime(session.endsAt)}</dd></div>
<div><dt>FHIR base</dt><dd><code>${session.fhirBaseUrl}</code></dd></div>
</dl>
<details class="more"><summary>Granted scopes</summary><p class="url url--block">${session.scope}</p></details>
${session.encounterId !== null && html`<details class="more"><summary>Encounter id</summary><p class="url url--block">${session.encounterId}</p></details>`}
<p class="small"><a href="/docs">Session API</a></p>
</div>`,
  )
}

function renderEncounter(encounter: DemoRecord['encounter']): Html {
  if (!encounter) return html`None`
  if (!encounter.ok)
    return html`Chosen at the launch<span class="sub">${describeFailure(encounter.failure)}</span>`
  const { title, kind, status, inProgress } = encounter.value
  return html`${title}&ensp;${renderBadge(status, inProgress ? 'accent' : undefined)}<span class="sub">${kind !== undefined && kind !== title && `${kind}, `}${formatEncounterTime(encounter.value)}</span>`
}

function renderBanner(patient: Patient, allergies: Allergies, now: number): Html {
  return renderPatientBanner(readPerson(patient), {
    now,
    heading: 'h1',
    sticky: true,
    more: [['Allergies', renderAllergies(allergies)]],
  })
}

function renderNamelessBanner(failure: Failure, { patientId }: Session): Html {
  const why = failure.kind === 'missing-scope' ? 'Name not shared with this app' : 'Name could not be loaded'
  return html`<section class="patient patient--sticky" aria-label="Patient"><div class="wrap patient__in"><h1 class="patient__name">${why}</h1><dl class="facts"><div><dt>FHIR id</dt><dd>${patientId}</dd></div></dl></div></section>`
}

/** For paper, which does not show the EHR's own banner (need_patient_banner false). */
function renderPrintedPatient(patient: Patient): Html {
  const person: Person = readPerson(patient)
  const { label, value } = chooseRecordNumber(person)
  return html`<p class="print"><b>${formatName(person.name)}</b>, born ${formatDate(person.born)}, ${label} ${value}</p>`
}
