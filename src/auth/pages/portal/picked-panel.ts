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
} from '../../../web/index.ts'
import type { DeveloperPages } from '../../base/context.ts'
import { paths } from '../../base/paths.ts'
import type { App, AppList } from '../../oauth/launch/apps.ts'
import type { OptionField } from '../../oauth/launch/options.ts'
import type { Encounter, Encounters, Picked } from '../../oauth/launch/picked.ts'
import { type EnteredLaunch, renderAppChoice, renderAppFinder, renderShownAgain } from './app-choice.ts'
import { renderUnverifiedBadge, renderUnverifiedWarning } from './apps.ts'
import { renderCardsPlace } from './cards-place.ts'
import { buildPortalUrl, type ListView } from './list.ts'

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
  readonly chosen: App | undefined
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

type LaunchFormOptions = PickedOptions & { readonly chosen: App }

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

/** The number of encounters that are shown at first, so that the launch button stays on the first screen. */
const IN_SIGHT = 4

interface EncounterChoice {
  /** The path of the page, which shows all encounters if it is asked. */
  readonly page: string
  /** Whether it shows all of them. */
  readonly isAll: boolean
  /** The choice in a form that is shown again: empty for "No encounter". */
  readonly chosen?: string | undefined
  readonly fault?: string | undefined
  /** Patients and relatives call it a visit. */
  readonly noun?: 'encounter' | 'visit'
}

/**
 * Preselects the only encounter in progress. CSS shows the earlier ones when their link is followed or one of them has the
 * focus, and the chosen one always. Unlike a closed `details`, this keeps all input.
 */
export function renderEncounterChoice(
  { listed, found, total = found, isCut }: Encounters,
  { page, isAll, chosen, fault, noun = 'encounter' }: EncounterChoice,
): Html {
  const running = listed.filter(encounter => encounter.inProgress)
  const usual = running.length === 1 ? running[0]?.id : listed.length === 0 ? '' : undefined
  const checked = chosen ?? (fault === undefined ? usual : undefined)
  const row = (encounter: Encounter, index: number) =>
    renderEncounter(encounter, encounter.id === checked, fault !== undefined && index === 0)
  const earlier = listed.slice(IN_SIGHT)
  return html`<fieldset id="encounters"${fault !== undefined && html` aria-describedby="encounter-error"`}><legend class="legend">${noun === 'visit' ? 'Visit' : 'Encounter'}</legend><div class="stack stack--tight">
${fault !== undefined && html`<div id="encounter-error">${renderAlert(`No ${noun} chosen.`, fault, 'bad')}</div>`}
<div class="choices">${listed.slice(0, IN_SIGHT).map(row)}
${earlier.length > 0 && html`<div class="choices__earlier" id="earlier">${earlier.map(encounter => row(encounter, IN_SIGHT))}${total > listed.length && renderRest(`${listed.length} of ${total} ${noun}s`, isAll ? undefined : page)}</div>`}
${renderChoice({ type: 'radio', name: 'encounterId', value: '', text: `No ${noun}`, meta: `${listed.length === 0 && !isCut ? 'None is recorded. ' : ''}The app opens with the ${noun === 'visit' ? 'record' : 'patient'} only`, isChecked: checked === '' })}</div>
${isCut && html`<p class="muted">The FHIR server did not return all ${noun}s.</p>`}
${
  earlier.length > 0 &&
  html`<p class="choices__more"><a class="moreof" href="#earlier">Show ${earlier.length} earlier ${earlier.length === 1 ? noun : `${noun}s`}</a>${total > listed.length && ` of ${total - Math.min(IN_SIGHT, listed.length)}`}</p>
<p class="choices__less"><a class="moreof moreof--less" href="#encounters">Show less</a></p>`
}
</div></fieldset>`
}

/** The rest of the encounters are read on demand, up to a limit. A button keeps what was chosen. */
function renderRest(count: string, page: string | undefined): Html {
  return html`<p class="choices__rest">${count}.${page !== undefined && html` <button class="btn btn--text" name="encounters" value="all" formaction="${page}#earlier" formmethod="get">Show more</button>`}</p>`
}

function renderEncounter(
  { id, title, status, inProgress, start, end, who }: Encounter,
  checked: boolean,
  isFocused: boolean,
): Html {
  return html`<label class="choice"><input type="radio" name="encounterId" value="${id}"${checked && html` checked`}${isFocused && html` autofocus`}>
<span class="choice__main">${title}</span>${renderBadge(status, inProgress ? 'accent' : undefined)}
<span class="choice__meta">${inProgress && 'Started '}${formatEncounterTime({ start, end })}${who !== undefined && `, ${who}`}</span></label>
`
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
