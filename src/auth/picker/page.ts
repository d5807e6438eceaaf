import {
  alikeWarning,
  type Html,
  html,
  icon,
  isAlike,
  type Person,
  page,
  patientBanner,
} from '../../web/index.ts'
import type { Client } from '../client/client.ts'
import type { Login } from '../login/login.ts'
import { paths } from '../paths.ts'
import { hostOfAddress, unverifiedWarning } from '../portal/app-identity.ts'
import { nobody, rowFacts, searchForm, sentence } from '../portal/list-html.ts'
import type { PatientList } from '../portal/patients.ts'
import type { Picked } from '../portal/picked.ts'
import { encounterChoice } from '../portal/picked-html.ts'

/** What both pages of the picker show around the choice. */
export interface PickerOptions {
  readonly client: Client
  readonly login: Login
  readonly interactionId: string
  readonly redirectUri: string
  /** Whether the app asks for records of other patients too (`user/` scopes). */
  readonly asksForOthers: boolean
  readonly sampleData: boolean
  readonly now: number
}

/** The patients of the portal, each with a radio; none is chosen beforehand (design: Patient row). */
export function patientPage(
  options: PickerOptions,
  { list, search, again }: { list: PatientList; search: string | undefined; again: boolean },
): Html {
  const { client, interactionId } = options
  const all = pickAddress(interactionId)
  const hidden = html`<input type="hidden" name="interaction" value="${interactionId}">`
  return shell(
    options,
    `Choose a patient for ${client.name}`,
    html`<div class="stack stack--tight">
${searchForm(paths.pick, search, hidden)}
${again && warning('No patient was chosen.', 'Choose one, or cancel.')}
${hasAlike(list.patients) && warning('Patients in this list have nearly the same name.', 'Check the birth date and the MRN before you continue.')}
${pickForm(options, list.patients.length === 0 ? html`<div class="card plistbox">${nobody(search, all)}</div>` : radios(options, list, search))}
</div>`,
  )
}

/** The encounters of the patient that was picked. */
export function encounterPage(options: PickerOptions, picked: Picked): Html {
  const { client, interactionId, now } = options
  return shell(
    options,
    `Choose an encounter for ${client.name}`,
    html`<p class="picker__back"><a href="${pickAddress(interactionId)}">${icon('back')}Another patient</a></p>
<section class="card card--clip" aria-labelledby="picked">${patientBanner(picked.person, { now, heading: 'h2', id: 'picked' })}${alikeWarning(picked.alike)}
<div class="card__body">${pickForm(
      options,
      html`<input type="hidden" name="patientId" value="${picked.person.id}"><input type="hidden" name="step" value="encounter">${encounterChoice(picked.encounters)}`,
    )}</div></section>`,
  )
}

export function pickAddress(interactionId: string, patient?: string): string {
  const query = new URLSearchParams({
    interaction: interactionId,
    ...(patient === undefined ? {} : { patient }),
  })
  return `${paths.pick}?${query}`
}

function shell(options: PickerOptions, heading: string, body: Html): Html {
  const { client, login, sampleData, redirectUri, asksForOthers } = options
  const reach = asksForOthers
    ? 'opens with this patient, and also asks for records of every patient you may see'
    : 'will reach this one record and no other'
  const steps = client.firstParty ? ['Sign in', 'Patient'] : ['Sign in', 'Patient', 'Access']
  const after = html`<div class="decide" role="region" aria-label="Your decision"><div class="wrap wrap--flow">
<button class="btn" form="pick">Continue</button>
<button class="btn btn--quiet" form="pick" name="cancel" value="1" formnovalidate>Cancel</button>
<p class="decide__note">Signed in as ${login.clinician.displayName}</p>
</div></div>`
  return page(
    { title: heading, bar: { kind: 'flow', steps, current: 1 }, width: 'flow', sampleData, after },
    html`<div class="pagehead"><div><h1>${heading}</h1>
<p class="pagehead__lead">The app at <b>${hostOfAddress(redirectUri)}</b> ${reach}.</p></div></div>
${unverifiedWarning(client)}
${body}`,
  )
}

function pickForm({ interactionId, login }: PickerOptions, choice: Html): Html {
  return html`<form id="pick" method="post" action="${paths.pick}">
<input type="hidden" name="interaction" value="${interactionId}">
<input type="hidden" name="clinician" value="${login.clinician.id}">
${choice}</form>`
}

function radios({ now, interactionId }: PickerOptions, list: PatientList, search: string | undefined): Html {
  const { patients } = list
  return html`<fieldset><legend class="sr">${sentence(list, search)}</legend>
<div class="card plistbox plist--pick">
<div class="plist__head" aria-hidden="true"><span></span><span>Name</span><span>Born</span><span>Age</span><span>Sex</span><span>MRN</span></div>
<ol class="plist">${patients.map(person => radio(person, now, patients))}</ol>
<p class="plist__note">${sentence(list, search)} ${search !== undefined && html`<a href="${pickAddress(interactionId)}">Show all</a>`}</p>
</div></fieldset>`
}

function radio(person: Person, now: number, all: readonly Person[]): Html {
  const alike = all.some(other => isAlike(person, other))
  return html`<li><label class="prow" data-patient-id="${person.id}"><input type="radio" name="patientId" value="${person.id}" required>
${rowFacts(person, { now, alike })}</label></li>
`
}

function hasAlike(patients: readonly Person[]): boolean {
  return patients.some(person => patients.some(other => isAlike(person, other)))
}

function warning(what: string, then: string): Html {
  return html`<div class="alert alert--warn">${icon('warning')}<p><b>${what}</b> ${then}</p></div>`
}
