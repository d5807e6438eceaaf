import {
  formatDate,
  formatName,
  type Html,
  html,
  type Person,
  readPerson,
  recordNumber,
  renderPatientBanner,
} from '../../web/index.ts'
import { findMissingScopes } from '../api/row.ts'
import type { Failure } from '../failure.ts'
import type { Patient } from '../records/resources.ts'
import type { Session } from '../sessions/session.ts'

/** The banner states that allergies are missing: a blank would read as "none". */
export function renderBanner(patient: Patient, session: Session, now: number): Html {
  return renderPatientBanner(readPerson(patient), {
    now,
    heading: 'h1',
    sticky: true,
    more: [['Allergies', html`<span class="unknown">${allergyText(session)}</span>`]],
  })
}

function allergyText({ scope }: Session): string {
  return findMissingScopes(['patient/AllergyIntolerance.rs'], scope).length > 0
    ? 'Not shared with this app'
    : 'Not shown in this app'
}

export function renderNamelessBanner(failure: Failure, { patientId }: Session): Html {
  const why = failure.kind === 'missing-scope' ? 'Name not shared with this app' : 'Name could not be loaded'
  return html`<section class="patient patient--sticky" aria-label="Patient"><div class="wrap patient__in"><h1 class="patient__name">${why}</h1><dl class="facts"><div><dt>FHIR id</dt><dd>${patientId}</dd></div></dl></div></section>`
}

/** For paper, which does not show the EHR's own banner (need_patient_banner false). */
export function renderPrintedPatient(patient: Patient): Html {
  const person: Person = readPerson(patient)
  const { label, value } = recordNumber(person)
  return html`<p class="print"><b>${formatName(person.name)}</b>, born ${formatDate(person.born)}, ${label} ${value}</p>`
}
