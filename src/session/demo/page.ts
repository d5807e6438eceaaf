import { isFailure } from '../../core/index.ts'
import {
  chooseRecordNumber,
  findAlike,
  formatEncounterTime,
  formatName,
  listAlike,
  readPerson,
  renderPatientBanner,
} from '../../web/person/index.ts'
import {
  computeWarningMs,
  formatDate,
  type Html,
  html,
  NOT_RECORDED,
  renderAlert,
  renderBadge,
  renderCountdown,
  renderDateTime,
  renderFacts,
  renderIcon,
} from '../../web/ui/index.ts'
import { type Audience, describeWayOn, findAudience, linkHome } from '../audience.ts'
import { type AppSettings, isSample, linkAuthServer } from '../context.ts'
import { isOfServer, type SessionFailure } from '../failure.ts'
import { renderAppPage } from '../page.ts'
import type { SessionRequest } from '../records/resources.ts'
import { getSessionPath, type Session } from '../session.ts'
import { computeIdleSeconds } from '../sessions/idle.ts'
import {
  describeFailure,
  renderAllergies,
  renderCard,
  renderConditionsCard,
  renderMedicinesCard,
  renderPressureCard,
} from './cards.ts'
import type { DemoRecord } from './load-record.ts'
import type { OtherSessions } from './open-sessions.ts'
import { nameFailure } from './states.ts'

export function renderRecordPage(
  { context, session }: SessionRequest,
  record: DemoRecord,
  others: OtherSessions,
): Html {
  const now = context.clock()
  const { patient, me } = record
  const audience = findAudience(session)
  const who = isFailure(me) ? undefined : me.name
  const idleSeconds = computeIdleSeconds(context.settings, session)
  const startedAt = Math.max(session.createdAt, session.endsAt - idleSeconds * 1000)
  const warningMs = computeWarningMs(idleSeconds)
  return renderAppPage(
    {
      title:
        !isFailure(patient) && session.needPatientBanner
          ? `${formatName(readPerson(patient).name)}: summary`
          : 'Summary',
      bar: {
        kind: 'app',
        countdown: renderCountdown({ startedAt, endsAt: session.endsAt, now, warningMs }),
        ...(who === undefined ? {} : { who }),
        logout: `${getSessionPath(session)}/logout`,
        links: [
          linkHome(context.settings, audience),
          ...(others.count === 0 ? [] : [{ href: '/', text: `Open sessions (${others.count + 1})` }]),
        ],
      },
      banner: html`${chooseBanner(session, record, now)}${renderSimilarNames(session, record, others)}`,
      ...(audience === 'staff' && { footer: renderFhirBase(session, record) }),
      sampleData: !isFailure(patient) && isSample(context.settings, readPerson(patient)),
      scripts: ['session.js'],
      after: renderPrintLine(now, who),
    },
    html`${renderWarnings(context.settings, session, now, warningMs)}
${!session.needPatientBanner && renderPrintHead(record)}
<div class="appgrid">
<div class="stack">${renderConditionsCard(record.conditions, audience)}${renderMedicinesCard(record.medications, audience)}</div>
<div class="stack">${renderPressureCard(record.vitals, audience, now)}${renderSessionCard(context.settings, session, record)}</div>
</div>`,
  )
}

function chooseBanner(session: Session, { patient, allergies }: DemoRecord, now: number): Html | undefined {
  if (!session.needPatientBanner) return undefined
  if (isFailure(patient)) return renderNamelessBanner(patient, session)
  return renderPatientBanner(readPerson(patient), {
    now,
    isForPatients: findAudience(session) !== 'staff',
    heading: 'h1',
    sticky: true,
    more: [['Allergies', renderAllergies(allergies)]],
  })
}

/**
 * Warns of a patient with a similar name: by name if that patient is open in this browser, too. Patients and relatives choose
 * among few records, and other patients are none of their business.
 */
function renderSimilarNames(
  session: Session,
  { patient }: DemoRecord,
  others: OtherSessions,
): Html | undefined {
  if (isFailure(patient)) return undefined
  const person = readPerson(patient)
  const open = findAlike(person, others.people)
  const isStaff = findAudience(session) === 'staff'
  const hasNamesake = session.similarName && isStaff
  if (open.length === 0 && !hasNamesake) return undefined
  return html`<aside class="patient__warn" aria-label="Warning"><p class="wrap">${renderIcon('warning')}<span>${
    open.length > 0
      ? html`<b>Similar name, also open in this browser:</b> ${listAlike(person, open, !isStaff)}`
      : html`<b>Another patient has a similar name.</b> Check the date of birth and the record number.`
  }</span></p></aside>`
}

/** The FHIR base URL and its state, for the footer. */
function renderFhirBase({ fhirBaseUrl }: Session, record: DemoRecord): Html {
  const failed = Object.values(record).some(part => part && isFailure(part) && isOfServer(part))
  return html`<span>FHIR base <code>${fhirBaseUrl}</code>&ensp;${
    failed ? renderBadge('Not available', 'bad') : renderBadge('Available', 'ok')
  }</span>`
}

/** The EHR shows the patient banner (DEMO-2), but a printed page has no EHR around it. */
function renderPrintHead({ patient }: DemoRecord): Html {
  const heading = html`<h1 class="sr">Summary</h1>`
  if (isFailure(patient)) return heading
  const person = readPerson(patient)
  const { label, value } = chooseRecordNumber(person)
  return html`${heading}<p class="print"><b>${formatName(person.name)}</b>, born ${formatDate(person.born)}, ${label} ${value}</p>`
}

/**
 * Warnings that the session ends soon. A page that was just loaded warns only if the end cannot be extended. The script
 * (assets/session.js) shows the other one.
 */
function renderWarnings(settings: AppSettings, session: Session, now: number, warningMs: number): Html {
  const { sessionId, endsAt, lastEndsAt } = session
  return html`<div id="session" data-session-id="${sessionId}" data-last-ends-at="${lastEndsAt}" data-warning-ms="${warningMs}">
<div id="session-soon" role="status" hidden>${renderAlert(
    'Your session ends soon.',
    html`<a href="${getSessionPath(session)}" id="session-keep">Keep working</a> to stay signed in.`,
    'warn',
  )}</div>
<div id="session-last" role="status"${endsAt - now >= warningMs && html` hidden`}>${renderAlert(
    'Your session ends soon and cannot be extended.',
    html`To continue after that, ${describeWayOn(settings, findAudience(session)).text}.`,
    'warn',
  )}</div>
</div>`
}

function renderPrintLine(now: number, who: string | undefined): Html {
  return html`<p class="print wrap">Printed ${renderDateTime(now)}${who !== undefined && ` by ${who}`} from the Sallyport demo app. Not the full record.</p>`
}

function renderSessionCard(settings: AppSettings, session: Session, record: DemoRecord): Html {
  const { me, encounter } = record
  const profile = isFailure(me) ? undefined : me
  const unknown = isFailure(me) ? 'Not shared with this app' : NOT_RECORDED
  const audience = findAudience(session)
  const isStaff = audience === 'staff'
  return renderCard(
    { id: 'h-session', title: 'Session' },
    html`<div class="card__body card__body--tight">
<dl class="kv kv--inline">
<div><dt>Signed in</dt><dd>${profile?.name ?? unknown}</dd></div>
${
  isStaff
    ? html`<div><dt>Staff identity</dt><dd>${profile?.fhirUser === undefined ? unknown : html`<code>${profile.fhirUser}</code>`}</dd></div>`
    : html`<div><dt>Record</dt><dd>${describeRecord(audience, record)}</dd></div>`
}
<div><dt>${isStaff ? 'Encounter' : 'Visit'}</dt><dd>${renderEncounter(encounter, audience)}</dd></div>
<div><dt>Ends</dt><dd id="session-ends">${renderDateTime(session.endsAt)}</dd></div>
</dl>
${!isStaff && renderAccessLink(settings)}
${isStaff ? renderStaffDetails(session) : renderDeveloperDetails(session)}
${isStaff && html`<p class="small"><a href="/docs">Session API</a></p>`}
</div>`,
  )
}

function renderStaffDetails({ scope, encounterId }: Session): Html {
  return html`<details class="more"><summary>Granted scopes</summary><p class="url url--block">${scope}</p></details>
${encounterId !== null && html`<details class="more"><summary>Encounter id</summary><p class="url url--block">${encounterId}</p></details>`}`
}

/** Patients and relatives see the terms of FHIR and OAuth in one place. */
function renderDeveloperDetails({ scope, encounterId, fhirBaseUrl }: Session): Html {
  return html`<details class="more"><summary>Details for developers</summary>${renderFacts([
    ['FHIR base', html`<code>${fhirBaseUrl}</code>`],
    ['Granted scopes', html`<span class="url url--block">${scope}</span>`],
    ...(encounterId === null ? [] : [['Encounter id', html`<code>${encounterId}</code>`] as const]),
  ])}</details>`
}

/** Whose record it is, for those who see their own or that of a relative. */
function describeRecord(audience: Audience, { patient }: DemoRecord): string {
  if (audience === 'self') return 'Your record'
  if (isFailure(patient)) return 'You act for this person'
  const { given, family, text } = readPerson(patient).name
  return `You act for ${[given, family].filter(Boolean).join(' ') || (text ?? 'this person')}`
}

/** Where patients and relatives end the access of an app. */
function renderAccessLink(settings: AppSettings): Html {
  const { href, text, newTab } = linkAuthServer(settings, '/manage', 'Apps with access')
  return html`<p class="small"><a href="${href}"${newTab === true && html` target="_blank"`}>${text}</a></p>`
}

function renderEncounter(encounter: DemoRecord['encounter'], audience: Audience): Html {
  if (!encounter)
    return html`None chosen<span class="sub">${audience === 'staff' ? 'Launched for the whole record' : 'Opened for the whole record'}</span>`
  if (isFailure(encounter))
    return html`Chosen at the launch<span class="sub">${describeFailure(encounter)}</span>`
  const { title, kind, status, inProgress } = encounter
  return html`${title}&ensp;${renderBadge(status, inProgress ? 'accent' : undefined)}<span class="sub">${kind !== undefined && kind !== title && `${kind}, `}${formatEncounterTime(encounter)}</span>`
}

function renderNamelessBanner(failure: SessionFailure, session: Session): Html {
  const isStaff = findAudience(session) === 'staff'
  return html`<section class="patient patient--sticky" aria-label="Patient"><div class="wrap patient__in"><h1 class="patient__name">${nameFailure(failure)}</h1>${isStaff && html`<dl class="facts"><div><dt>FHIR id</dt><dd>${session.patientId}</dd></div></dl>`}</div></section>`
}
