import {
  formatEncounterTime,
  type Html,
  html,
  renderAlikeWarning,
  renderBadge,
  renderEmptyState,
  renderField,
  renderIcon,
  renderName,
  renderPatientBanner,
} from '../../web/index.ts'
import type { Client } from '../client/client.ts'
import { paths } from '../paths.ts'
import type { App } from './apps.ts'
import { renderAppIdentity, renderListedApp, renderUnverifiedBadge, renderUnverifiedWarning } from './apps.ts'
import { buildPortalUrl } from './list.ts'
import type { Encounter, Picked } from './picked.ts'

export function renderNonePicked(): Html {
  return html`<section class="card portal__picked portal__picked--none" aria-labelledby="picked">${renderEmptyState(
    {
      id: 'picked',
      title: 'No patient selected',
      text: 'Select a patient from the list. Then choose the encounter and launch the app. No record is opened before that.',
    },
  )}</section>`
}

export function renderPatientNotFound(search: string | undefined): Html {
  return html`<section class="card portal__picked" aria-labelledby="picked">${renderEmptyState({
    id: 'picked',
    title: 'Patient not found',
    text: 'The record was removed, or you do not have access to it. Select another patient.',
    action: { href: buildPortalUrl({ search }), text: 'All patients' },
  })}</section>`
}

export interface PickedOptions {
  readonly picked: Picked
  readonly apps: readonly App[]
  /** The app that the button launches; undefined if there is none. */
  readonly chosen: App | undefined
  readonly search: string | undefined
  readonly now: number
}

/** The patient banner, patients with similar names, and the launch form. */
export function renderPicked({ picked, apps, chosen, search, now }: PickedOptions): Html {
  return html`<div>
<p class="portal__back"><a href="${buildPortalUrl({ search })}">${renderIcon('back')}All patients</a></p>
<section class="card card--clip portal__picked" aria-labelledby="picked">
${renderPatientBanner(picked.person, { now, heading: 'h2', id: 'picked' })}
${renderAlikeWarning(picked.alike)}
<div class="card__body">${chosen ? renderLaunchForm(picked, { apps, chosen, search }) : renderNoApp()}</div>
</section>
</div>`
}

function renderNoApp(): Html {
  return html`<p>There is no app to launch yet. Ask your administrator to register one with a launch URL.</p>`
}

interface AppChoice {
  readonly apps: readonly App[]
  readonly chosen: App
  readonly search: string | undefined
}

function renderLaunchForm({ person, encounters }: Picked, choice: AppChoice): Html {
  const { client, isDefault } = choice.chosen
  return html`<form class="launch" method="post" action="${paths.portalLaunch}">
<input type="hidden" name="patientId" value="${person.id}">
${!isDefault && html`<input type="hidden" name="clientId" value="${client.id}">`}
${choice.apps.length > 1 && renderAppChoice(choice, person.id)}
${renderUnverifiedWarning(client)}
${renderEncounterChoice(encounters)}
${renderMoreOptions()}
<div class="launch__bar"><button class="btn btn--wide"><span>Launch ${client.name}</span> ${renderIcon('launch')}</button>
<p class="launch__after">Opens for <b>${renderName(person.name)}</b>. The link works once, within 5 minutes.${renderUnverifiedBadge(client)}</p></div>
</form>`
}

/** The number of encounters that are shown at first, so that the launch button stays on the first screen. */
const IN_SIGHT = 4

/**
 * Preselects the only encounter in progress. CSS shows the earlier ones when their link is followed, one of them has the
 * focus or is chosen. Unlike a closed `details`, this keeps all input and lets the browser validate every radio button.
 */
export function renderEncounterChoice(encounters: readonly Encounter[]): Html {
  const running = encounters.filter(encounter => encounter.inProgress)
  const chosen = running.length === 1 ? running[0]?.id : encounters.length === 0 ? '' : undefined
  const row = (one: Encounter) => renderChoice(one, one.id === chosen)
  const earlier = encounters.slice(IN_SIGHT)
  return html`<fieldset><legend class="legend">Encounter</legend><div class="stack stack--tight">
<div class="choices">${encounters.slice(0, IN_SIGHT).map(row)}
${earlier.length > 0 && html`<div class="choices__earlier" id="earlier">${earlier.map(row)}</div>`}
<label class="choice"><input type="radio" name="encounterId" value="" required${chosen === '' && html` checked`}><span class="choice__main">No encounter</span><span class="choice__meta">The app opens with the patient only</span></label></div>
${earlier.length > 0 && html`<p class="choices__more"><a class="moreof" href="#earlier">Show ${earlier.length} earlier ${earlier.length === 1 ? 'encounter' : 'encounters'}</a></p>`}
</div></fieldset>`
}

function renderChoice({ id, title, status, inProgress, start, end, who }: Encounter, checked: boolean): Html {
  return html`<label class="choice"><input type="radio" name="encounterId" value="${id}" required${checked && html` checked`}>
<span class="choice__main">${title}</span>${renderBadge(status, inProgress ? 'accent' : undefined)}
<span class="choice__meta">${inProgress && 'Started '}${formatEncounterTime({ start, end })}${who !== undefined && `, ${who}`}</span></label>
`
}

// Links, because the content security policy lets the form lead to the chosen app only. The default app is preselected.
function renderAppChoice({ apps, chosen, search }: AppChoice, patient: string): Html {
  return html`<nav aria-labelledby="apps"><p class="legend" id="apps">App</p><div class="choices">${apps.map(
    ({ client }) => {
      const isChosen = client.id === chosen.client.id
      const href = buildPortalUrl({ search, patient, client: client.id })
      return html`<a class="choice choice--link" href="${href}"${isChosen && html` aria-current="true"`}>
<span class="choice__main">${isChosen ? renderAppIdentity(client) : renderListedApp(client)}</span>${hasNamesake(client, apps) && html`<span class="choice__meta">Client id <code>${client.id}</code></span>`}
${client.description !== undefined && html`<span class="choice__meta">${client.description}</span>`}</a>
`
    },
  )}</div></nav>`
}

// Shows the client id only if two apps have the same name.
function hasNamesake({ id, name }: Client, apps: readonly App[]): boolean {
  return apps.some(({ client }) => client.id !== id && client.name === name)
}

/** The rest of SMART's launch context. */
function renderMoreOptions(): Html {
  return html`<details class="more"><summary>More options</summary><div class="stack stack--tight launch__more">
<fieldset><legend class="legend">Patient banner</legend><div class="choices">
<label class="choice"><input type="radio" name="needPatientBanner" value="" checked><span class="choice__main">Default</span></label>
<label class="choice"><input type="radio" name="needPatientBanner" value="true"><span class="choice__main">The app shows it</span></label>
<label class="choice"><input type="radio" name="needPatientBanner" value="false"><span class="choice__main">The EHR shows it</span></label>
</div></fieldset>
${renderField({ name: 'intent', label: 'Intent' })}
${renderField({ name: 'tenant', label: 'Tenant' })}
<div class="field"><label class="field__label" for="fhirContext">More records in context</label><textarea class="input" id="fhirContext" name="fhirContext" rows="3" spellcheck="false" aria-describedby="fhirContext-hint"></textarea>
<p class="field__hint" id="fhirContext-hint">One reference per line, such as <code>ImagingStudy/123</code>, or the JSON array of <code>fhirContext</code>.</p></div>
</div></details>`
}
