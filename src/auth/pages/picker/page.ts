import { type Person, renderAlikeWarning, renderPatientBanner } from '../../../web/person/index.ts'
import {
  type Brand,
  type Html,
  html,
  renderHidden,
  renderIcon,
  renderPage,
  renderPageHead,
} from '../../../web/ui/index.ts'
import { paths } from '../../base/paths.ts'
import type { Client } from '../../oauth/clients/client.ts'
import { listPeople, type PatientList } from '../../patients/patients.ts'
import type { Picked } from '../../patients/picked.ts'
import type { Login } from '../../users/find-login.ts'
import type { OwnRecord } from '../../users/own-records.ts'
import { readHost, renderUnverifiedWarning } from '../parts/apps.ts'
import { renderEncounterChoice } from '../parts/encounter-choice.ts'
import {
  describeList,
  describeMatches,
  type ListView,
  renderFacts,
  renderGroups,
  renderListNote,
  renderMatches,
  renderNoPatients,
  renderPager,
  renderPatientSearch,
} from '../parts/patient-list.ts'
import { buildPickUrl } from '../parts/pick-url.ts'
import { renderOwnRecords } from './own-records.ts'

export interface PickerOptions {
  readonly client: Client
  readonly login: Login
  readonly pendingId: string
  readonly redirectUri: string
  /** Whether the app requests access to other patients too (`user/` scopes). */
  readonly asksForOthers: boolean
  /** The records of a patient user; none for a clinician. */
  readonly ownRecords: readonly OwnRecord[]
  readonly brand: Brand
  readonly sampleData: boolean
  readonly now: number
  readonly scripts: readonly string[]
}

interface PatientsView extends ListView {
  readonly list: PatientList
  readonly suggestions: readonly string[]
  readonly again: boolean
}

/** The patients of the portal with radio buttons. None is preselected. */
export function renderPatientPage(options: PickerOptions, view: PatientsView): Html {
  const { list, search, again } = view
  const people = listPeople(list)
  const { client, pendingId } = options
  const isOwn = options.ownRecords.length > 0
  return renderShell(
    options,
    isOwn ? `Whose record should ${client.name} use?` : `Choose a patient for ${client.name}`,
    html`<div class="stack stack--tight">
${!isOwn && renderPatientSearch(paths.pick, search, { hidden: { interaction: pendingId }, isFocused: true })}
<div class="stack stack--tight" data-results>
${again && renderWarning(isOwn ? 'Nobody is selected.' : 'No patient selected.', 'Select one, or cancel.')}
${people.some(({ id }) => list.similar.ids.has(id)) && renderWarning('Patients in this list have names similar to others.', `Check the birth date${isOwn ? '' : ' and the MRN'} before you continue.`)}
${renderPickForm(options, html`${renderHidden({ search, page: view.page })}${people.length === 0 ? html`<div class="card plistbox">${renderNoPatients(search, { list, suggestions: view.suggestions, build: text => buildPickUrl(pendingId, { search: text }) })}</div>` : isOwn ? renderOwnRecords(list, { records: options.ownRecords, now: options.now, pager: renderPages(options, view) }) : renderRadios(options, view)}`)}
</div></div>`,
  )
}

interface EncountersView extends ListView {
  readonly picked: Picked
  readonly isAll: boolean
  /** Empty for "No encounter", undefined if nothing was chosen. */
  readonly chosen: string | undefined
  readonly fault: string | undefined
}

export function renderEncounterPage(options: PickerOptions, view: EncountersView): Html {
  const { client, pendingId, now } = options
  const { picked, isAll, chosen, fault, search, page } = view
  const isForPatients = options.ownRecords.length > 0
  return renderShell(
    options,
    `Choose ${isForPatients ? 'a visit' : 'an encounter'} for ${client.name}`,
    html`${options.ownRecords.length !== 1 && html`<p class="back"><a href="${buildPickUrl(pendingId, { search, page })}">${renderIcon('back')}Choose another ${isForPatients ? 'person' : 'patient'}</a></p>`}
<section class="card card--clip" aria-labelledby="picked"><div class="portal__whose">${renderPatientBanner(picked.person, { now, heading: 'h2', id: 'picked', focused: fault === undefined, isForPatients })}${renderAlikeWarning(picked.person, picked.alike, isForPatients)}</div>
<div class="card__body">${renderPickForm(
      options,
      html`${renderHidden({ patientId: picked.person.id, patient: picked.person.id, step: 'encounter', search, page, encounters: isAll ? 'all' : undefined })}${renderEncounterChoice(picked.encounters, { page: paths.pick, isAll, chosen, fault, noun: isForPatients ? 'visit' : 'encounter' })}`,
    )}</div></section>`,
  )
}

function renderShell(options: PickerOptions, heading: string, body: Html): Html {
  const { client, login, brand, sampleData, redirectUri, asksForOthers } = options
  const extent = asksForOthers
    ? `opens with the ${options.ownRecords.length === 0 ? 'patient' : 'record'} that you choose, and also requests access to every record you may open`
    : 'will have access to the record that you choose, and to no other'
  const choice = options.ownRecords.length === 0 ? 'Patient' : 'Record'
  const steps = ['Sign in', choice, ...(client.firstParty ? [] : ['Access'])]
  const after = html`<div class="decide" role="region" aria-label="Your decision"><div class="wrap wrap--flow">
<button class="btn" form="pick">Continue</button>
<button class="btn btn--quiet" form="pick" name="cancel" value="1" formnovalidate>Cancel</button>
<p class="decide__note">Signed in as ${login.user.displayName}</p>
</div></div>`
  return renderPage(
    {
      title: heading,
      brand,
      bar: { kind: 'flow', steps, current: 1 },
      width: 'flow',
      sampleData,
      after,
      scripts: options.scripts,
    },
    html`${renderPageHead(heading, html`The app at <b>${readHost(redirectUri)}</b> ${extent}.`)}
${renderUnverifiedWarning(client, redirectUri)}
${body}`,
  )
}

function renderPickForm({ pendingId, login }: PickerOptions, choice: Html): Html {
  return html`<form id="pick" method="post" action="${paths.pick}" novalidate>
${renderHidden({ interaction: pendingId, clinician: login.user.id })}
${choice}</form>`
}

function renderPages({ pendingId }: PickerOptions, { list, search, page }: PatientsView): Html | undefined {
  return renderPager(list, { page, build: position => buildPickUrl(pendingId, { search, page: position }) })
}

function renderRadios(options: PickerOptions, view: PatientsView): Html {
  const { now, pendingId } = options
  const { list, search } = view
  return html`<fieldset><legend class="sr">${search === undefined ? describeList(list, search) : describeMatches(list, search)}</legend>
<div class="card plistbox plist--pick">${renderMatches(list, search, buildPickUrl(pendingId))}
<div class="plist__head" aria-hidden="true"><span></span><span>Name</span><span>Born</span><span>Age</span><span>Sex</span><span>MRN</span></div>
${renderGroups(list, (person, mark) => renderRadio(person, mark, { now, alike: list.similar.ids.has(person.id) }))}
${renderListNote(list, search)}
${renderPages(options, view)}
</div></fieldset>`
}

function renderRadio(
  person: Person,
  mark: Html,
  facts: { readonly now: number; readonly alike: boolean },
): Html {
  return html`<li><label class="prow"${mark}><input type="radio" name="patientId" value="${person.id}">
${renderFacts(person, facts)}</label></li>
`
}

function renderWarning(what: string, then: string): Html {
  return html`<div class="alert alert--warn">${renderIcon('warning')}<p><b>${what}</b> ${then}</p></div>`
}
