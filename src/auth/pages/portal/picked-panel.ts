import { renderAlikeWarning, renderName, renderPatientBanner } from '../../../web/person/index.ts'
import {
  type Html,
  html,
  renderChoice,
  renderEmptyState,
  renderField,
  renderHidden,
  renderIcon,
} from '../../../web/ui/index.ts'
import type { DeveloperPages } from '../../base/context.ts'
import { paths } from '../../base/paths.ts'
import type { AppList, LaunchableApp } from '../../oauth/launch/apps.ts'
import type { OptionField } from '../../oauth/launch/options.ts'
import type { Picked } from '../../patients/picked.ts'
import { renderUnverifiedBadge, renderUnverifiedWarning } from '../parts/apps.ts'
import { renderCardsPlace } from '../parts/cards-place.ts'
import { renderEncounterChoice } from '../parts/encounter-choice.ts'
import { buildPortalUrl, type ListView } from '../parts/patient-list.ts'
import { type EnteredLaunch, renderAppChoice, renderAppFinder, renderShownAgain } from './app-choice.ts'

export function renderNonePicked(): Html {
  return html`<section class="card portal__picked portal__picked--none" aria-labelledby="picked">${renderEmptyState(
    {
      id: 'picked',
      title: 'No patient selected',
      text: 'Select a patient from the list. Then choose the encounter and launch the app. The app opens no record before that.',
    },
  )}</section>`
}

export function renderPatientNotFound(view: ListView): Html {
  return html`<section class="card portal__picked" aria-labelledby="picked">${renderEmptyState({
    id: 'picked',
    title: 'Patient not found',
    text: 'The record was removed, or you do not have access to it. Select another patient.',
    action: { href: buildPortalUrl({ ...view }), text: 'All patients' },
  })}</section>`
}

export interface PickedOptions {
  readonly picked: Picked
  readonly apps: AppList
  /** The app that the button launches; undefined if there is none. */
  readonly chosen: LaunchableApp | undefined
  /** The text by which apps were searched. */
  readonly appSearch: string | undefined
  readonly view: ListView
  readonly now: number
  readonly developerPages: DeveloperPages | undefined
  /** Whether CDS services are configured. */
  readonly hasCards: boolean
  /** A launch form that is shown again. */
  readonly entered?: EnteredLaunch | undefined
  /** Whether an app is searched, instead of the launch form. */
  readonly isFindingApp: boolean
  readonly allEncounters: boolean
}

/** The patient banner, patients with similar names, and the launch form. */
export function renderPicked(options: PickedOptions): Html {
  const { picked, chosen, view, now, entered } = options
  return html`<div>
<p class="portal__back"><a href="${buildPortalUrl({ ...view })}">${renderIcon('back')}All patients</a></p>
<section class="card card--clip portal__picked" aria-labelledby="picked">
<div class="portal__whose">${renderPatientBanner(picked.person, { now, heading: 'h2', id: 'picked', focused: entered === undefined })}
${renderAlikeWarning(picked.person, picked.alike)}</div>
${options.hasCards && renderCardsPlace(picked.person.id)}
<div class="card__body">${chosen ? renderLaunch({ ...options, chosen }) : renderNoApp(options)}</div>
</section>
</div>`
}

function renderLaunch(options: LaunchFormOptions): Html {
  const choice = { ...options, patientId: options.picked.person.id, entered: options.entered }
  return options.isFindingApp ? renderAppFinder(choice) : renderLaunchForm(options, renderAppChoice(choice))
}

function renderNoApp({ developerPages }: PickedOptions): Html {
  return developerPages
    ? html`<p>There is no app to launch yet. <a href="${developerPages.apps}/new">Register an app</a> with a launch URL.</p>`
    : html`<p>There is no app to launch yet. Ask your administrator to register one with a launch URL.</p>`
}

type LaunchFormOptions = PickedOptions & { readonly chosen: LaunchableApp }

function renderLaunchForm(options: LaunchFormOptions, appChoice: Html): Html {
  const { picked, chosen, view, entered, developerPages, allEncounters } = options
  const { client, isDefault } = chosen
  const { person, encounters } = picked
  const { apps, hasMore } = options.apps
  // The first button is the one that the Enter key presses.
  return html`<form class="launch" method="post" action="${paths.portalLaunch}" novalidate><button hidden></button>
${renderHidden({ patientId: person.id, ...(isDefault ? {} : { clientId: client.id }), step: 'encounter' })}${renderShownAgain({ patientId: person.id, view, allEncounters })}
${renderUnverifiedWarning(client)}
${(apps.length > 1 || hasMore) && appChoice}
${renderEncounterChoice(encounters, { page: paths.portal, isAll: allEncounters, chosen: entered?.encounterId, fault: entered?.fault?.field === 'encounterId' ? entered.fault.text : undefined })}
${renderMoreOptions(entered, developerPages !== undefined)}
<div class="launch__bar"><button class="btn btn--wide" aria-keyshortcuts="Control+Enter Meta+Enter"><span>Launch ${client.name}</span> ${renderIcon('launch')}</button>
<p class="launch__after">Opens for <b>${renderName(person.name)}</b>${person.mrn !== undefined && html`, <span class="number">MRN ${person.mrn}</span>`}${renderUnverifiedBadge(client)} <kbd class="launch__key" hidden>Ctrl+Enter</kbd></p></div>
${
  // After the button that launches, which the Enter key presses.
  developerPages &&
  html`<p class="small"><button class="btn btn--text" formaction="${developerPages.launchSettings}" formmethod="get">Launch settings for developers</button> <a href="${developerPages.apps}/new">Register an app</a></p>`
}</form>`
}

const BANNER_CHOICES = [
  ['', 'Default'],
  ['true', 'The app shows it'],
  ['false', 'The EHR shows it'],
] as const

/** The rest of SMART's launch context: for developers, and in a form that is shown again with such a value. */
function renderMoreOptions(entered: EnteredLaunch | undefined, isDeveloper: boolean): Html | undefined {
  const fault = entered?.fault
  const find = (name: OptionField) => ({
    name,
    value: entered?.form.get(name),
    error: fault?.field === name ? fault.text : undefined,
    autofocus: fault?.field === name,
  })
  const banner = find('needPatientBanner')
  const fields = [banner, find('intent'), find('tenant'), find('fhirContext')]
  const isOpen = fields.some(({ value, error }) => value !== undefined || error !== undefined)
  if (!isDeveloper && !isOpen) return undefined
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
