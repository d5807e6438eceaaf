import { formatName } from '../../web/person/index.ts'
import {
  formatDate,
  type Html,
  html,
  renderActions,
  renderAlert,
  renderBadge,
  renderChoice,
  renderCopyable,
  renderOptions,
  renderPageHead,
} from '../../web/ui/index.ts'
import { formatFhirUser } from '../base/user.ts'
import type { AuthContext } from '../oauth/context.ts'
import { listScopesOf, renderScopePicker } from '../pages/parts/app-form/scope-picker.ts'
import { renderSignedInPage } from '../pages/parts/page-parts.ts'
import { describePerson, type PickerItem } from './find.ts'
import { hasContext, LAUNCH_KINDS } from './kinds.ts'
import { labPaths } from './paths.ts'
import { LINK_PARAMETERS } from './read-link.ts'
import { SIMULATION_GROUPS } from './simulation-texts.ts'
import { ANY_PATIENT, type LabView } from './view.ts'

/** All settings of a launch, and the link that they make. Works without scripts; with them the link follows the form. */
export function renderLabPage(context: AuthContext, view: LabView): Html {
  return renderSignedInPage(
    context,
    view.login,
    { title: 'Lab', current: 'developers', scripts: ['copy.js', 'pickers.js', 'lab.js'] },
    html`${renderPageHead(
      'Lab',
      'Launch any app with any context, with or without pages, and with simulated errors. Everything else is checked as always.',
      html`<a class="btn btn--quiet" href="${view.login.developerPages?.apps}">Registered apps</a>`,
    )}
<div class="lab">
${renderForm(view)}
${renderResult(context, view)}
</div>`,
  )
}

function renderResult(context: AuthContext, view: LabView): Html {
  return html`<section class="card card__body stack stack--tight lab__result" id="result" aria-labelledby="link">
<h2 id="link">${LAUNCH_KINDS[view.kind].title}</h2>
<div class="stack stack--tight" id="outcome" data-live>${renderOutcome(context, view)}</div>
</section>`
}

function renderOutcome(context: AuthContext, view: LabView): Html {
  const { kind, fault, patient, client, form } = view
  if (fault !== undefined) return html`${renderAlert('No link.', fault.text, 'bad')}${renderMatches(view)}`
  if (kind === 'backend') return renderBackend(context, view)
  if (kind === 'ehr' && !patient) {
    const any = `${labPaths.lab}?${new URLSearchParams({ ...toRecord(form), [ANY_PATIENT]: '1' })}#result`
    return html`<p>Choose a patient. The link appears here, and changes with every setting.</p>
<p><a class="btn btn--quiet" href="${any}">Choose any patient</a></p>`
  }
  if (
    client &&
    client.launchUrl === undefined &&
    form.get('launch_url') === undefined &&
    client.id !== context.settings.defaultClientId
  )
    return renderAlert('No link.', `${client.name} has no launch URL. Enter one, or change the app.`, 'bad')
  const link = `${context.settings.issuerUrl}${labPaths.launch}?${buildQuery(view)}`
  return html`<p>${describeLaunch(view)}</p>
${renderActions({ href: link, text: 'Launch', newTab: true })}
${renderCopyable('Link', link)}
${renderCopyable('Command line', `curl -s '${link}&redirect=0'`)}
<p class="small muted">${hasContext(kind) ? 'The link creates a new launch each time it is opened. A launch works once, within 5 minutes.' : 'The link only opens the app, with iss.'}</p>`
}

/** The parameters that the kind of launch uses. */
function buildQuery({ form, kind }: LabView): URLSearchParams {
  const used = hasContext(kind) ? LINK_PARAMETERS : ['client', 'launch_url']
  const values = used
    .filter(name => name !== 'kind')
    .flatMap(name => {
      const value = form.get(name)
      return value === undefined ? [] : [[name, value] as const]
    })
  return new URLSearchParams(
    [...(kind === 'ehr' ? [] : [['kind', kind] as const]), ...values].map(pair => [...pair]),
  )
}

function describeLaunch({ kind, client, user, patient, form }: LabView): Html {
  const app = html`Opens <b>${client?.name ?? form.get('client')}</b>`
  if (!hasContext(kind)) return html`${app} without a context. The user signs in and decides.`
  const simulate = form.get('simulate')
  return html`${app} for <b>${patient ? formatName(patient.name) : 'the user’s own record'}</b> as <b>${user?.displayName}</b>${
    form.get('skip_login') === '1' && ', without a sign-in'
  }${form.get('skip_consent') === '1' && ', without consent'}.${simulate !== undefined && html` ${renderBadge(`Simulates ${simulate}`, 'warn')}`}`
}

/** Without scripts a name is typed where the id belongs. */
function renderMatches({ matches, form }: LabView): Html | undefined {
  if (matches.length === 0) return undefined
  const buildUrl = (patient: string) =>
    `${labPaths.lab}?${new URLSearchParams({ ...toRecord(form), patient })}#result`
  return html`<div class="choices">${matches.map(person => {
    const { name, about } = describePerson(person)
    return html`<a class="choice choice--link" href="${buildUrl(person.id)}"><span class="choice__main">${name}</span><span class="choice__meta">${about}</span></a>`
  })}</div>`
}

function toRecord(form: LabView['form']): Record<string, string> {
  return Object.fromEntries(
    LINK_PARAMETERS.flatMap(name => {
      const value = form.get(name)
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

function renderBackend({ settings }: AuthContext, { client, login }: LabView): Html {
  const isBackend = client?.authMethod === 'private_key_jwt' && /(^| )system\//.test(client.scope)
  if (!client || !isBackend)
    return html`<p>Choose an app with keys and system/ scopes, or <a href="${login.developerPages?.apps}/new">register one</a>.</p>`
  return html`<p><b>${client.name}</b> sends this request by itself, with an assertion that it signs with one of its keys (RS384 or ES384).</p>
${renderCopyable('Token endpoint', `${settings.issuerUrl}/oauth2/token`)}
${renderCopyable(
  'Form',
  `grant_type=client_credentials&client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer&client_assertion=<signed JWT>&scope=${client.scope
    .split(' ')
    .filter(part => part.startsWith('system/'))
    .join('+')}`,
)}
${settings.onLoopback && renderActions({ href: `${labPaths.appsCode}?${new URLSearchParams({ client: client.id })}`, text: 'Code for this app' })}`
}

function renderForm(view: LabView): Html {
  const { form, kind, client } = view
  const box = (name: string, value: string, text: string, meta: string) =>
    renderChoice({ type: 'checkbox', name, value, text, meta, isChecked: form.get(name) === value })
  const field = (options: FieldOptions) => renderControl(view, options)
  return html`<form class="stack lab__form" method="get" action="${labPaths.lab}#result" data-lab>
<section class="card card__body stack">
<fieldset><legend class="legend">Kind of launch</legend><div class="choices choices--grid">${Object.entries(
    LAUNCH_KINDS,
  ).map(([value, { title, text }]) =>
    renderChoice({ type: 'radio', name: 'kind', value, text: title, meta: text, isChecked: value === kind }),
  )}</div></fieldset>
<div class="fields">
${renderPicker(view, { name: 'client', label: 'App', chosen: describeApp(view), listed: view.apps, isFree: true, hint: 'By name or client id. Empty: the app of the portal.' })}
${field({ name: 'launch_url', label: 'Launch URL', hint: 'Empty: the registered URL. With an unknown client id: registers the app for a day.' })}
<div class="lab__context">${renderPicker(view, { name: 'user', label: 'User', chosen: describeUser(view), listed: view.users, hint: 'By name or username. Empty: the user who is signed in.' })}</div>
<div class="lab__context">${renderPicker(view, { name: 'patient', label: 'Patient', chosen: view.patient && describePerson(view.patient), hint: kind === 'patient' ? 'By name, birth date, MRN or id. Empty: the user’s own record.' : 'By name, birth date, MRN or id.' })}</div>
<div class="lab__context" id="encounters" data-live>${renderEncounters(view)}</div>
</div>
</section>
<section class="card card__body lab__context"><fieldset><legend class="legend">Pages and PKCE</legend><div class="choices choices--grid">${box('skip_login', '1', 'Skip sign-in', 'No sign-in page: the launch is authorized as its user.')}${box('skip_consent', '1', 'Skip consent', 'All requested scopes are granted, as if the user had allowed them.')}${box('pkce', 'optional', 'PKCE is optional', 'The app may omit code_challenge, as apps written for SMART 1 do.')}</div></fieldset></section>
<section class="card card__body lab__context" id="scopes" data-live>${renderScopePicker({
    legend: 'Scopes that can be granted',
    hint: client
      ? `Of the scopes that ${client.name} requests, this launch can grant only those that you choose. If you choose none, it can grant all that the app requests and is registered for.`
      : 'If you choose none, this launch can grant all that the app requests.',
    groups: listScopesOf(client?.scope ?? ''),
    chosen: form.get('scope') ?? '',
  })}</section>
<section class="card card__body lab__context"><details class="more"${hasDetails(view) && html` open`}><summary>Context and tokens</summary><div class="fields">
${field({ name: 'token_ttl', label: 'Lifetime of access tokens (seconds)', hint: '1 to 3600. A short one tests the refresh.' })}
${field({ name: 'intent', label: 'Intent', hint: 'What the app should do, such as reconcile-medications.' })}
${field({ name: 'tenant', label: 'Tenant', hint: 'The organization, in the token response.' })}
${field({ name: 'fhir_context', label: 'fhirContext (JSON array)', hint: 'Further resources of the context: [{"reference":"ImagingStudy/1"}]' })}
${field({ name: 'style', label: 'Style (smart_style_url)', hint: 'Empty: the style of this server. “none”: no style.' })}
${field({ name: 'need_patient_banner', label: 'Patient banner', choices: BANNER })}
</div></details></section>
<section class="card card__body lab__context">${renderSimulations(view)}</section>
<div class="actions" data-plain><button class="btn">Create link</button></div>
</form>`
}

function describeApp({ client }: LabView): PickerItem | undefined {
  return client && { value: client.id, name: client.name, about: client.launchUrl ?? client.id }
}

function describeUser({ user }: LabView): PickerItem | undefined {
  return user && { value: user.username, name: user.displayName, about: formatFhirUser(user.fhirUserId) }
}

const DETAILS = ['token_ttl', 'intent', 'tenant', 'fhir_context', 'style', 'need_patient_banner']

function hasDetails({ form }: LabView): boolean {
  return DETAILS.some(name => form.get(name) !== undefined)
}

function renderSimulations({ form }: LabView): Html {
  const chosen = form.get('simulate') ?? ''
  return html`<fieldset class="stack stack--tight"><legend class="legend">Simulated error</legend>
<div class="choices">${renderChoice({ type: 'radio', name: 'simulate', value: '', text: 'None', meta: 'The launch works.', isChecked: chosen === '' })}</div>
${SIMULATION_GROUPS.map(
  ({ title, text, simulations }) =>
    html`<details class="more"${simulations.some(({ name }) => name === chosen) && html` open`}><summary>${title}</summary><div><p class="small muted">${text}</p><div class="choices choices--grid">${simulations.map(
      ({ name, text: meta }) =>
        renderChoice({
          type: 'radio',
          name: 'simulate',
          value: name,
          text: name,
          meta,
          isChecked: name === chosen,
        }),
    )}</div></div></details>`,
)}
</fieldset>`
}

function renderEncounters(view: LabView): Html {
  const { patient, encounters, form } = view
  const chosen = form.get('encounter') ?? ''
  const listed = (encounters?.listed ?? []).map(
    ({ id, title, status, start }) => [id, `${title}, ${formatDate(start)}, ${status}`] as const,
  )
  const isListed = chosen === '' || listed.some(([id]) => id === chosen)
  return renderControl(view, {
    name: 'encounter',
    label: 'Encounter',
    hint: patient ? 'One of the patient’s encounters.' : 'Choose a patient first.',
    choices: [['', 'No encounter'], ...listed, ...(isListed ? [] : [[chosen, chosen] as const])],
  })
}

interface PickerOptions {
  readonly name: string
  readonly label: string
  /** Also without a value, if there is a usual one. */
  readonly chosen: PickerItem | undefined
  readonly hint: string
  /** Suggestions for a browser without scripts. */
  readonly listed?: readonly PickerItem[]
  /** Whether other values are good too. */
  readonly isFree?: boolean
}

/** A field for an id, which `pickers.js` makes a search by name. */
function renderPicker(view: LabView, options: PickerOptions): Html {
  const { name, label, chosen, hint, listed, isFree = false } = options
  const isWrong = view.fault?.facts?.parameter === name
  return html`<div class="field"><label class="field__label" for="${name}">${label}</label><input class="input" id="${name}" name="${name}" value="${view.form.get(name)}" autocomplete="off" autocapitalize="none" spellcheck="false" aria-describedby="${name}-hint" data-find="${labPaths.find}?what=${name}"${chosen !== undefined && html` data-name="${chosen.name}"`}${isFree && html` data-free`}${listed && html` list="${name}-values"`}${isWrong && html` aria-invalid="true"`}>${
    listed &&
    html`<datalist id="${name}-values">${listed.map(({ value, name: text }) => html`<option value="${value}">${text}</option>`)}</datalist>`
  }<p class="field__hint" id="${name}-hint" data-live>${chosen === undefined ? hint : html`<span class="pick__chosen">${chosen.name}, </span>${chosen.about}`}</p></div>`
}

type Choices = readonly (readonly [value: string, text: string])[]

const BANNER: Choices = [
  ['', 'Default'],
  ['true', 'The app shows it'],
  ['false', 'The EHR shows it'],
]

interface FieldOptions {
  readonly name: string
  readonly label: string
  readonly hint?: string
  /** The only values. */
  readonly choices?: Choices
}

function renderControl({ form, fault }: LabView, { name, label, hint, choices }: FieldOptions): Html {
  const value = form.get(name) ?? ''
  const described = hint !== undefined && html` aria-describedby="${name}-hint"`
  const control = choices
    ? html`<select class="select" id="${name}" name="${name}"${described}>${renderOptions(choices, value)}</select>`
    : html`<input class="input" id="${name}" name="${name}" value="${value}" autocomplete="off" autocapitalize="none" spellcheck="false"${described}${fault?.facts?.parameter === name && html` aria-invalid="true"`}>`
  return html`<div class="field"><label class="field__label" for="${name}">${label}</label>${control}${
    hint !== undefined && html`<p class="field__hint" id="${name}-hint">${hint}</p>`
  }</div>`
}
