import {
  type Html,
  html,
  renderActions,
  renderAlert,
  renderChoice,
  renderCopyable,
  renderPageHead,
} from '../../web/index.ts'
import type { Parameters } from '../base/request.ts'
import type { AuthContext } from '../oauth/context.ts'
import { renderSignedInPage } from '../pages/page-parts.ts'
import type { Login } from '../users/find-login.ts'
import { labPaths } from './paths.ts'
import { LINK_PARAMETERS } from './read-link.ts'
import { SIMULATIONS } from './settings.ts'

export interface LabPageOptions {
  readonly login: Login
  /** The settings that were sent, by the names of the link. */
  readonly form: Parameters
  /** Why they make no link. */
  readonly fault: string | undefined
  readonly clients: readonly string[]
  readonly usernames: readonly string[]
}

/** The launch settings, and the link that they make. Works without scripts. */
export function renderLabPage(context: AuthContext, options: LabPageOptions): Html {
  const { login, form, fault } = options
  const isSent = form.get('patient') !== undefined
  return renderSignedInPage(
    context,
    login,
    { title: 'Lab', current: 'developers', scripts: ['copy.js'] },
    html`${renderPageHead(
      'Lab',
      'Launch any app with any context, with or without pages, and with simulated errors. Everything else is checked as always.',
      html`<a class="btn btn--quiet" href="${login.developerPages?.apps}">Registered apps</a>`,
    )}
<div class="stack">
${isSent && (fault === undefined ? renderLink(context.settings.issuerUrl, form) : renderAlert('No link.', fault, 'bad'))}
${renderForm(options)}
</div>`,
  )
}

function renderLink(issuerUrl: string, form: Parameters): Html {
  const query = new URLSearchParams(
    LINK_PARAMETERS.flatMap(name => {
      const value = form.get(name)
      return value === undefined ? [] : [[name, value]]
    }),
  )
  const link = `${issuerUrl}${labPaths.launch}?${query}`
  return html`<section class="card card__body stack stack--tight" aria-labelledby="link">
<h2 id="link">Link</h2>
<p>Each request creates a launch, which works once, within 5 minutes.</p>
${renderCopyable('Link', link)}
${renderCopyable('Command line', `curl -s '${link}&redirect=0'`)}
${renderActions({ href: link, text: 'Launch', newTab: true })}
</section>`
}

function renderForm({ form, fault, clients, usernames }: LabPageOptions): Html {
  const control = (options: FieldOptions) => renderControl(form, fault, options)
  const box = (name: string, value: string, text: string) =>
    renderChoice({ type: 'checkbox', name, value, text, isChecked: form.get(name) === value })
  return html`<form class="card card__body stack" method="get" action="${labPaths.lab}">
<fieldset class="fields"><legend class="legend">Launch</legend>
${control({ name: 'client', label: 'App (client id)', values: clients, hint: 'Empty: the app of the portal.' })}
${control({ name: 'launch_url', label: 'Launch URL', hint: 'Empty: the registered URL. With an unknown client id: registers the app for a day.' })}
${control({ name: 'patient', label: 'Patient id', required: true, hint: 'Required. “Launch settings for developers” in the portal fills it in.' })}
${control({ name: 'encounter', label: 'Encounter id', hint: 'Empty: no encounter.' })}
${control({ name: 'user', label: 'User', values: usernames, hint: 'Empty: the user who is signed in.' })}
</fieldset>
<fieldset><legend class="legend">Pages and PKCE</legend><div class="choices">${box('skip_login', '1', 'Skip login: nobody signs in')}${box('skip_consent', '1', 'Skip consent')}${box('pkce', 'optional', 'PKCE is optional')}</div></fieldset>
<fieldset class="fields"><legend class="legend">Context and tokens</legend>
${control({ name: 'scope', label: 'Scopes granted at most', hint: 'Empty: as requested and registered.' })}
${control({ name: 'token_ttl', label: 'Lifetime of access tokens (seconds)' })}
${control({ name: 'intent', label: 'Intent' })}
${control({ name: 'tenant', label: 'Tenant' })}
${control({ name: 'fhir_context', label: 'fhirContext (JSON array)' })}
${control({ name: 'style', label: 'Style (smart_style_url)', hint: 'Empty: the style of this server. “none”: no style.' })}
${control({ name: 'need_patient_banner', label: 'Patient banner', choices: BANNER })}
</fieldset>
${control({ name: 'simulate', label: 'Simulated error', choices: [['', 'None'], ...SIMULATIONS.map(name => [name, name] as const)] })}
<div class="actions"><button class="btn">Create link</button></div>
</form>`
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
  readonly required?: true
  /** Suggested values. */
  readonly values?: readonly string[]
  /** The only values. */
  readonly choices?: Choices
}

/** The fault of a link begins with the name of its parameter. */
function renderControl(form: Parameters, fault: string | undefined, options: FieldOptions): Html {
  const { name, label, hint, required, values, choices } = options
  const value = form.get(name) ?? ''
  const isWrong = form.get('patient') !== undefined && fault?.startsWith(`${name}: `)
  const described = hint !== undefined && html` aria-describedby="${name}-hint"`
  const control = choices
    ? html`<select class="select" id="${name}" name="${name}">${choices.map(([choice, text]) => html`<option value="${choice}"${choice === value && html` selected`}>${text}</option>`)}</select>`
    : html`<input class="input" id="${name}" name="${name}" value="${value}" autocomplete="off" autocapitalize="none" spellcheck="false"${described}${values && html` list="${name}-values"`}${required && html` required`}${isWrong && html` aria-invalid="true" autofocus`}>`
  return html`<div class="field"><label class="field__label" for="${name}">${label}</label>${control}${
    values &&
    html`<datalist id="${name}-values">${values.map(suggestion => html`<option value="${suggestion}"></option>`)}</datalist>`
  }${hint !== undefined && html`<p class="field__hint" id="${name}-hint">${hint}</p>`}</div>`
}
