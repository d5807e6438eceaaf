import {
  formatEncounterTime,
  type Html,
  html,
  renderAlert,
  renderAlikeWarning,
  renderBadge,
  renderChoice,
  renderEmptyState,
  renderField,
  renderHidden,
  renderIcon,
  renderName,
  renderPatientBanner,
  renderSearchForm,
} from '../../../web/index.ts'
import type { DeveloperPages } from '../../base/context.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import type { Parameters } from '../../base/request.ts'
import type { Client } from '../../oauth/clients/client.ts'
import type { App, AppList } from '../../oauth/launch/apps.ts'
import type { FormFault, OptionField } from '../../oauth/launch/options.ts'
import type { Encounter, Encounters, Picked } from '../../oauth/launch/picked.ts'
import { renderAppIdentity, renderListedApp, renderUnverifiedBadge, renderUnverifiedWarning } from './apps.ts'
import { renderCardsPlace } from './cards-place.ts'
import { buildPortalUrl } from './list.ts'

export function renderNonePicked(): Html {
  return html`<section class="card portal__picked portal__picked--none" aria-labelledby="picked">${renderEmptyState(
    {
      id: 'picked',
      title: 'No patient selected',
      text: 'Select a patient from the list. Then choose the encounter and launch the app. No record is opened before that.',
    },
  )}</section>`
}

export function renderPatientNotFound(view: ListView): Html {
  return html`<section class="card portal__picked" aria-labelledby="picked">${renderEmptyState({
    id: 'picked',
    title: 'Patient not found',
    text: 'The record was removed, or you do not have access to it. Select another patient.',
    action: { href: buildPortalUrl(view), text: 'All patients' },
  })}</section>`
}

/** The list beside the selected patient. */
export interface ListView {
  readonly search: string | undefined
  readonly page: string | undefined
}

export interface PickedOptions {
  readonly picked: Picked
  readonly apps: AppList
  /** The app that the button launches; undefined if there is none. */
  readonly chosen: App | undefined
  /** The text by which apps were searched. */
  readonly appSearch: string | undefined
  readonly view: ListView
  readonly now: number
  readonly developerPages: DeveloperPages | undefined
  /** Whether CDS services are configured. */
  readonly hasCards: boolean
  /** A launch form with a fault, which is shown again. */
  readonly failed?: FailedLaunch | undefined
}

/** A launch form as it was sent, and the field at fault. */
export interface FailedLaunch {
  readonly form: Parameters
  /** Empty if "No encounter" was chosen, undefined if nothing was. */
  readonly encounterId: string | undefined
  readonly fault: FormFault
}

/** The patient banner, patients with similar names, and the launch form. */
export function renderPicked(options: PickedOptions): Html {
  const { picked, chosen, view, now, failed } = options
  return html`<div>
<p class="portal__back"><a href="${buildPortalUrl(view)}">${renderIcon('back')}All patients</a></p>
<section class="card card--clip portal__picked" aria-labelledby="picked">
${renderPatientBanner(picked.person, { now, heading: 'h2', id: 'picked', focused: failed === undefined })}
${renderAlikeWarning(picked.alike)}
<div class="card__body">${chosen ? renderLaunchForm({ ...options, chosen }) : renderNoApp(options)}</div>
${chosen && hasChoice(options) && renderAppChoice({ ...options, chosen })}
${options.hasCards && renderCardsPlace(picked.person.id)}
</section>
</div>`
}

function renderNoApp({ developerPages }: PickedOptions): Html {
  return developerPages
    ? html`<p>There is no app to launch yet. <a href="${developerPages.apps}/new">Register an app</a> with a launch URL.</p>`
    : html`<p>There is no app to launch yet. Ask your administrator to register one with a launch URL.</p>`
}

type LaunchFormOptions = PickedOptions & { readonly chosen: App }

function renderLaunchForm(options: LaunchFormOptions): Html {
  const { picked, chosen, view, failed, developerPages } = options
  const { client, isDefault } = chosen
  const { person, encounters } = picked
  const all = buildPortalUrl({ ...view, patient: person.id, client: chosen.client.id, encounters: 'all' })
  return html`<form class="launch" method="post" action="${paths.portalLaunch}" novalidate>
${renderHidden({ patientId: person.id, ...view, ...(isDefault ? {} : { clientId: client.id }), step: 'encounter' })}
${renderUnverifiedWarning(client)}
${renderEncounterChoice(encounters, { all, chosen: failed?.encounterId, fault: failed?.fault.field === 'encounterId' ? failed.fault.text : undefined })}
${renderMoreOptions(failed)}
${developerPages && html`<p class="small"><a href="${developerPages.buildLaunchUrl(client.id, person.id)}">Launch settings for developers</a></p>`}
<div class="launch__bar"><button class="btn btn--wide"><span>Launch ${client.name}</span> ${renderIcon('launch')}</button>
<p class="launch__after">Opens for <b>${renderName(person.name)}</b>. The link works once, within 5 minutes.${renderUnverifiedBadge(client)}${hasChoice(options) && html` <a href="#apps">Choose another app</a>`}${developerPages && html`${hasChoice(options) && ' or'} <a href="${developerPages.apps}/new">${hasChoice(options) ? 'register one' : 'Register an app'}</a>`}</p></div>
</form>`
}

function hasChoice({ apps: { apps, hasMore }, appSearch }: PickedOptions): boolean {
  return apps.length > 1 || hasMore || appSearch !== undefined
}

/** The number of encounters that are shown at first, so that the launch button stays on the first screen. */
const IN_SIGHT = 4

interface EncounterChoice {
  /** The URL of the page with all encounters. */
  readonly all: string
  /** The choice in a form that is shown again: empty for "No encounter". */
  readonly chosen?: string | undefined
  readonly fault?: string | undefined
}

/**
 * Preselects the only encounter in progress. CSS shows the earlier ones when their link is followed, one of them has the
 * focus or is chosen. Unlike a closed `details`, this keeps all input.
 */
export function renderEncounterChoice(
  { listed, found, total = found }: Encounters,
  { all, chosen, fault }: EncounterChoice,
): Html {
  const running = listed.filter(encounter => encounter.inProgress)
  const usual = running.length === 1 ? running[0]?.id : listed.length === 0 ? '' : undefined
  const checked = chosen ?? (fault === undefined ? usual : undefined)
  const row = (encounter: Encounter) => renderEncounter(encounter, encounter.id === checked)
  const earlier = listed.slice(IN_SIGHT)
  return html`<fieldset${fault !== undefined && html` aria-describedby="encounter-error"`}><legend class="legend">Encounter</legend><div class="stack stack--tight">
${fault !== undefined && html`<div id="encounter-error">${renderAlert('No encounter chosen.', fault, 'bad')}</div>`}
<div class="choices">${listed.slice(0, IN_SIGHT).map(row)}
${earlier.length > 0 && html`<div class="choices__earlier" id="earlier">${earlier.map(row)}${total > listed.length && renderRest(listed.length, total, all)}</div>`}
${renderChoice({ type: 'radio', name: 'encounterId', value: '', text: 'No encounter', meta: 'The app opens with the patient only', isChecked: checked === '' })}</div>
${earlier.length > 0 && html`<p class="choices__more"><a class="moreof" href="#earlier">Show ${earlier.length} earlier ${earlier.length === 1 ? 'encounter' : 'encounters'}</a>${total > listed.length && ` of ${total - Math.min(IN_SIGHT, listed.length)}`}</p>`}
</div></fieldset>`
}

/** The rest of the encounters are read on demand, up to a limit. */
function renderRest(shown: number, total: number, all: string): Html {
  return html`<p class="choices__rest">${shown} of ${total} encounters. <a href="${all}#earlier">Show more</a></p>`
}

function renderEncounter(
  { id, title, status, inProgress, start, end, who }: Encounter,
  checked: boolean,
): Html {
  return html`<label class="choice"><input type="radio" name="encounterId" value="${id}"${checked && html` checked`}>
<span class="choice__main">${title}</span>${renderBadge(status, inProgress ? 'accent' : undefined)}
<span class="choice__meta">${inProgress && 'Started '}${formatEncounterTime({ start, end })}${who !== undefined && `, ${who}`}</span></label>
`
}

// Links, because the content security policy lets the form lead to the chosen app only. The default app is preselected.
function renderAppChoice({
  apps: { apps, hasMore },
  chosen,
  appSearch,
  view,
  picked,
}: LaunchFormOptions): Html {
  const patient = picked.person.id
  return html`<div class="card__body stack stack--tight"><nav aria-labelledby="apps"><p class="legend" id="apps">App</p><div class="choices">${apps.map(
    ({ client }) => {
      const isChosen = client.id === chosen.client.id
      return html`<a class="choice choice--link" href="${buildPortalUrl({ ...view, patient, client: client.id })}"${isChosen && html` aria-current="true"`}>
<span class="choice__main">${isChosen ? renderAppIdentity(client) : renderListedApp(client)}</span>${hasNamesake(client, apps) && html`<span class="choice__meta">Client id <code>${client.id}</code></span>`}
${client.description !== undefined && html`<span class="choice__meta">${client.description}</span>`}</a>
`
    },
  )}</div></nav>
${apps.length === 0 && html`<p class="muted">No app matches “${appSearch}”.</p>`}
${(hasMore || appSearch !== undefined) && renderSearchForm({ action: paths.portal, name: 'app', label: 'Find another app by name', subject: 'Apps', value: appSearch, maxCharacters: LIMITS.searchCharacters, hidden: { ...view, patient } })}</div>`
}

// Shows the client id only if two apps have the same name.
function hasNamesake({ id, name }: Client, apps: readonly App[]): boolean {
  return apps.some(({ client }) => client.id !== id && client.name === name)
}

const BANNER_CHOICES = [
  ['', 'Default'],
  ['true', 'The app shows it'],
  ['false', 'The EHR shows it'],
] as const

/** The rest of SMART's launch context. */
function renderMoreOptions(failed: FailedLaunch | undefined): Html {
  const find = (name: OptionField) => ({
    name,
    value: failed?.form.get(name),
    error: failed?.fault.field === name ? failed.fault.text : undefined,
    autofocus: failed?.fault.field === name,
  })
  const banner = find('needPatientBanner')
  const isOpen = failed !== undefined && failed.fault.field !== 'encounterId'
  return html`<details class="more"${isOpen && html` open`}><summary>More options</summary><div class="stack stack--tight launch__more">
<fieldset><legend class="legend">Patient banner</legend><div class="choices">${BANNER_CHOICES.map(
    ([value, text]) =>
      renderChoice({
        type: 'radio',
        name: 'needPatientBanner',
        value,
        text,
        isChecked: (banner.value ?? '') === value,
      }),
  )}</div>${banner.error !== undefined && html`<p class="field__error" id="needPatientBanner-error">${banner.error}</p>`}</fieldset>
${renderField({ ...find('intent'), label: 'Intent' })}
${renderField({ ...find('tenant'), label: 'Tenant' })}
${renderField({
  ...find('fhirContext'),
  label: 'More records in context',
  rows: 3,
  hint: html`One reference per line, such as <code>ImagingStudy/123</code>, or the JSON array of <code>fhirContext</code>.`,
})}
</div></details>`
}
