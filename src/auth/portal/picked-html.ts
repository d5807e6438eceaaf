import {
  alikeWarning,
  badge,
  empty,
  encounterTime,
  field,
  type Html,
  html,
  icon,
  nameHtml,
  patientBanner,
} from '../../web/index.ts'
import type { Client } from '../client/client.ts'
import { paths } from '../paths.ts'
import { appIdentity, listedApp, unverifiedBadge, unverifiedWarning } from './app-identity.ts'
import type { App } from './apps.ts'
import type { Encounter } from './encounters.ts'
import { portalAddress } from './list-html.ts'
import type { Picked } from './picked.ts'

/** Beside the list while nobody is picked. */
export function nonePicked(): Html {
  return html`<section class="card portal__picked portal__picked--none" aria-labelledby="picked">${empty({
    id: 'picked',
    title: 'No patient picked',
    text: 'Pick a patient from the list. You then choose the encounter and launch the app. Nothing is opened before that.',
  })}</section>`
}

/** A patient in the address whom the FHIR server does not have, or not for this clinician. */
export function pickedAbsent(search: string | undefined): Html {
  return html`<section class="card portal__picked" aria-labelledby="picked">${empty({
    id: 'picked',
    title: 'This patient is not here',
    text: 'The record was removed, or you may not see it. Pick another patient.',
    action: { href: portalAddress({ search }), text: 'All patients' },
  })}</section>`
}

export interface PickedOptions {
  readonly picked: Picked
  readonly apps: readonly App[]
  /** The one that the button launches; undefined where there is none. */
  readonly chosen: App | undefined
  readonly search: string | undefined
  readonly now: number
}

/** The patient's band, who could be taken for them, and the launch form. */
export function pickedHtml({ picked, apps, chosen, search, now }: PickedOptions): Html {
  return html`<div>
<p class="portal__back"><a href="${portalAddress({ search })}">${icon('back')}All patients</a></p>
<section class="card card--clip portal__picked" aria-labelledby="picked">
${patientBanner(picked.person, { now, heading: 'h2', id: 'picked' })}
${alikeWarning(picked.alike)}
<div class="card__body">${chosen ? launchForm(picked, { apps, chosen, search }) : noApp()}</div>
</section>
</div>`
}

function noApp(): Html {
  return html`<p>No app can be launched yet. Ask whoever looks after Sallyport to register one with a launch address.</p>`
}

interface AppChoice {
  readonly apps: readonly App[]
  readonly chosen: App
  readonly search: string | undefined
}

function launchForm({ person, encounters }: Picked, choice: AppChoice): Html {
  const { client, isDefault } = choice.chosen
  return html`<form class="launch" method="post" action="${paths.portalLaunch}">
<input type="hidden" name="patientId" value="${person.id}">
${!isDefault && html`<input type="hidden" name="clientId" value="${client.id}">`}
${choice.apps.length > 1 && appChoice(choice, person.id)}
${unverifiedWarning(client)}
${encounterChoice(encounters)}
${moreOptions()}
<div class="launch__bar"><button class="btn btn--wide"><span>Launch ${client.name}</span> ${icon('launch')}</button>
<p class="launch__after">Opens for <b>${nameHtml(person.name)}</b>. The link works once, within 5 minutes.${unverifiedBadge(client)}</p></div>
</form>`
}

/** So many are in sight; the launch button stays on the first screen. The others are one click away. */
const IN_SIGHT = 4

/**
 * Chosen for the clinician only where there is no doubt (design: Encounter). The earlier ones come into sight by CSS once
 * their link is followed, the keyboard reaches them or one is chosen: nothing that was chosen or typed is lost, and a
 * browser can ask for every choice there is, which it cannot inside of a closed disclosure.
 */
export function encounterChoice(encounters: readonly Encounter[]): Html {
  const running = encounters.filter(encounter => encounter.inProgress)
  const chosen = running.length === 1 ? running[0]?.id : encounters.length === 0 ? '' : undefined
  const row = (one: Encounter) => choice(one, one.id === chosen)
  const earlier = encounters.slice(IN_SIGHT)
  return html`<fieldset><legend class="legend">Encounter</legend><div class="stack stack--tight">
<div class="choices">${encounters.slice(0, IN_SIGHT).map(row)}
${earlier.length > 0 && html`<div class="choices__earlier" id="earlier">${earlier.map(row)}</div>`}
<label class="choice"><input type="radio" name="encounterId" value="" required${chosen === '' && html` checked`}><span class="choice__main">No encounter</span><span class="choice__meta">The app opens with the patient only</span></label></div>
${earlier.length > 0 && html`<p class="choices__more"><a class="moreof" href="#earlier">Show ${earlier.length} earlier ${earlier.length === 1 ? 'encounter' : 'encounters'}</a></p>`}
</div></fieldset>`
}

function choice({ id, title, status, inProgress, start, end, who }: Encounter, checked: boolean): Html {
  return html`<label class="choice"><input type="radio" name="encounterId" value="${id}" required${checked && html` checked`}>
<span class="choice__main">${title}</span>${badge(status, inProgress ? 'accent' : undefined)}
<span class="choice__meta">${inProgress && 'Started '}${encounterTime({ start, end })}${who !== undefined && `, ${who}`}</span></label>
`
}

// Links, because the page's policy lets the form lead to the chosen app alone. The default app is chosen, so that two
// clicks stay two clicks.
function appChoice({ apps, chosen, search }: AppChoice, patient: string): Html {
  return html`<nav aria-labelledby="apps"><p class="legend" id="apps">App</p><div class="choices">${apps.map(
    ({ client }) => {
      const isChosen = client.id === chosen.client.id
      const href = portalAddress({ search, patient, client: client.id })
      return html`<a class="choice choice--link" href="${href}"${isChosen && html` aria-current="true"`}>
<span class="choice__main">${isChosen ? appIdentity(client) : listedApp(client)}</span>${hasNamesake(client, apps) && html`<span class="choice__meta">Client id <code>${client.id}</code></span>`}
${client.description !== undefined && html`<span class="choice__meta">${client.description}</span>`}</a>
`
    },
  )}</div></nav>`
}

// An id tells a clinician nothing, so it stands there only where names cannot tell two apps apart.
function hasNamesake({ id, name }: Client, apps: readonly App[]): boolean {
  return apps.some(({ client }) => client.id !== id && client.name === name)
}

/** What few launches need: the rest of SMART's launch context. Left alone, nothing of it is sent. */
function moreOptions(): Html {
  return html`<details class="more"><summary>More options</summary><div class="stack stack--tight launch__more">
<fieldset><legend class="legend">Patient banner</legend><div class="choices">
<label class="choice"><input type="radio" name="needPatientBanner" value="" checked><span class="choice__main">As it is set</span></label>
<label class="choice"><input type="radio" name="needPatientBanner" value="true"><span class="choice__main">The app shows it</span></label>
<label class="choice"><input type="radio" name="needPatientBanner" value="false"><span class="choice__main">The record system shows it</span></label>
</div></fieldset>
${field({ name: 'intent', label: 'Intent' })}
${field({ name: 'tenant', label: 'Tenant' })}
<div class="field"><label class="field__label" for="fhirContext">More records in context</label><textarea class="input" id="fhirContext" name="fhirContext" rows="3" spellcheck="false" aria-describedby="fhirContext-hint"></textarea>
<p class="field__hint" id="fhirContext-hint">One reference a line, such as <code>ImagingStudy/123</code>, or the JSON array of <code>fhirContext</code>.</p></div>
</div></details>`
}
