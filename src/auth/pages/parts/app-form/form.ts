import { isFailure, toSentence } from '../../../../core/index.ts'
import { findJsonExcess } from '../../../../fhir/index.ts'
import {
  type Field,
  type Html,
  html,
  renderAlert,
  renderChoice,
  renderField,
  renderHidden,
} from '../../../../web/ui/index.ts'
import { makeFault } from '../../../base/fault.ts'
import { joinRepeated, type Parameters, readParameters } from '../../../base/request.ts'
import type { Client } from '../../../oauth/clients/client.ts'
import { CLIENT_FIELDS, type PlainProperty, TEXT_FIELDS } from '../../../oauth/clients/fields.ts'
import type { ClientChanges } from '../../../oauth/clients/store-client.ts'
import {
  CLIENT_DEFAULTS,
  ClientFault,
  type ClientProperties,
  findClientIdFault,
  hasOwnScope,
  listClientFaults,
  NAMED_FAULTS,
  nameValue,
  normalizeScope,
  readRegisteredKeys,
} from '../../../oauth/clients/validate.ts'
import { ALL_SCOPES, renderScopePicker } from './scope-picker.ts'

/** The properties of a form, and whether the secret is replaced. Only an administrator states `firstParty`. */
export type FormProperties = ClientChanges & Pick<ClientProperties, 'scope' | 'authMethod'>

interface FormOptions {
  readonly isAdministrator: boolean
}

/** The parameters of a sent form, which has a `scope` for each box. */
export function readAppParameters(body: unknown): Parameters {
  return readParameters(joinRepeated(body, 'scope'))
}

/** Reads a form. The result still has to be validated. */
export function readAppForm(form: Parameters, options: FormOptions): FormProperties | ClientFault {
  const { app, faults } = parseAppForm(form, options)
  return faults[0] ?? app
}

/** The faults of a form by the names of its fields: all of each field. `found` was found when it was stored. */
export function listFormFaults(
  form: Parameters,
  options: FormOptions,
  found?: ClientFault,
): ReadonlyMap<string, string> {
  const { app, faults } = parseAppForm(form, options)
  const id = form.get('client_id')?.trim()
  const idFault = id === undefined || id === '' ? undefined : findClientIdFault(id)
  const registrar = { isByAdministrator: options.isAdministrator }
  const all = [
    ...(found ? [found, ...found.others] : []),
    ...faults,
    ...(idFault ? [idFault] : []),
    ...listClientFaults({ ...CLIENT_DEFAULTS, ...app }, registrar),
  ]
  const byField = Map.groupBy(all, fault => CLIENT_FIELDS[fault.property].field)
  return new Map([...byField].map(([name, faults]) => [name, describeFaults(faults)]))
}

interface ParsedForm {
  readonly app: FormProperties
  readonly faults: readonly ClientFault[]
}

function parseAppForm(form: Parameters, { isAdministrator }: FormOptions): ParsedForm {
  const text = (property: keyof typeof CLIENT_FIELDS) =>
    form.get(CLIENT_FIELDS[property].field)?.trim() || undefined
  const stated = TEXT_FIELDS.map(({ property, kind, separator = /\s+/ }) => [
    property,
    kind === 'list' ? [...new Set(text(property)?.split(separator))] : text(property),
  ])
  const authMethod = METHODS.find(([value]) => value === text('authMethod'))?.[0]
  const scope = normalizeScope(text('scope') ?? '')
  const keys = authMethod === 'private_key_jwt' ? readKeys(text('jwks')) : undefined
  const faults = [
    text('name') === undefined && new ClientFault('name', makeFault('name-missing')),
    authMethod === undefined && new ClientFault('authMethod', makeFault('kind-missing')),
    authMethod !== undefined &&
      authMethod !== 'private_key_jwt' &&
      (text('jwks') ?? text('jwksUrl')) !== undefined &&
      new ClientFault('authMethod', makeFault('keys-without-kind')),
    hasOwnScope(scope) && !isAdministrator && new ClientFault('scope', makeFault('scope-of-administrators')),
    isFailure(keys) && keys,
  ].filter(fault => fault !== false)
  const app = {
    ...Object.fromEntries(stated),
    scope,
    authMethod: authMethod ?? 'none',
    // Not undefined if it is unreadable, so that the URL is not missing.
    jwks: isFailure(keys) ? '' : keys,
    jwksUrl: authMethod === 'private_key_jwt' ? text('jwksUrl') : undefined,
    pkceRequired: text('pkceRequired') !== 'optional',
    issParameter: text('issParameter') !== 'omit',
    newSecret: form.get('new_secret') === '1',
    ...(isAdministrator && readFirstParty(text('firstParty') === '1')),
  }
  return { app, faults }
}

/** A first-party app is approved. */
function readFirstParty(firstParty: boolean): Pick<ClientChanges, 'approved' | 'firstParty'> {
  return { firstParty, ...(firstParty && { approved: true }) }
}

function readKeys(text: string | undefined): string | undefined | ClientFault {
  if (text === undefined) return undefined
  try {
    return readRegisteredKeys(findJsonExcess(text) ? undefined : JSON.parse(text))
  } catch {
    return new ClientFault('jwks', makeFault('keys-not-json'))
  }
}

/** The least with which a first launch shows a patient, from the portal and standalone. */
const DEFAULT_SCOPE = 'launch launch/patient openid fhirUser patient/Patient.rs'

/** The form of a new app. */
export const NEW_APP: Parameters = {
  get: name => ({ auth_method: 'none', scope: DEFAULT_SCOPE })[name],
  unreadable: new Set(),
}

/** The form of a registered app. */
export function fillAppForm(client: Client): Parameters {
  const values: Readonly<Record<string, string | undefined>> = {
    ...Object.fromEntries(TEXT_FIELDS.map(({ field, property }) => [field, formatText(client[property])])),
    scope: client.scope,
    auth_method: client.authMethod,
    jwks: client.jwks,
    jwks_url: client.jwksUrl,
    pkce: client.pkceRequired ? undefined : 'optional',
    iss: client.issParameter ? undefined : 'omit',
    first_party: client.firstParty ? '1' : undefined,
  }
  return { get: name => (Object.hasOwn(values, name) ? values[name] : undefined), unreadable: new Set() }
}

function formatText(value: Client[PlainProperty]): string | undefined {
  return typeof value === 'object' ? value.join('\n') : value?.toString()
}

export interface AppFormOptions extends FormOptions {
  readonly action: string
  readonly form: Parameters
  /** By the names of fields. */
  readonly faults?: ReadonlyMap<string, string> | undefined
  /** The app that is changed; undefined for a new one. */
  readonly client?: Client | undefined
  readonly cancel: string
  /** Where the form is checked while it is filled in. */
  readonly check?: string
}

type FieldOptions = Partial<Pick<Field, 'hint' | 'required' | 'rows'>>

/** The form of an app. Works without scripts. */
export function renderAppForm(options: AppFormOptions): Html {
  const { action, client, cancel, isAdministrator, form, faults } = options
  const inOrder = [...MAIN.map(property => CLIENT_FIELDS[property]), ...Object.values(CLIENT_FIELDS)]
  const faulty = inOrder.find(one => faults?.has(one.field))
  const field = (property: ClientFault['property'], more: FieldOptions = {}) => {
    const { field: name, label } = CLIENT_FIELDS[property]
    const value = form.get(name) ?? ''
    return renderField({
      name,
      label,
      value,
      error: faults?.get(name),
      autofocus: faulty?.field === name,
      ...more,
    })
  }
  const box = (name: string, value: string, text: string, meta: string) =>
    renderChoice({ type: 'checkbox', name, value, text, meta, isChecked: form.get(name) === value })
  return html`<form class="card card__body stack appform" method="post" action="${action}" novalidate${options.check !== undefined && html` data-check="${options.check}"`}>
${renderHidden({ client: client?.id })}
${field('name', { required: true })}
${field('redirectUris', { rows: 2, hint: html`Where the browser returns after the sign-in, such as <code>http://localhost:3000/callback</code>, or <code>http://localhost:3000/index.html</code> for an app of one page. One per line, compared exactly: https, http on loopback, or a private-use scheme.` })}
${field('launchUrl', { hint: html`The portal sends the browser here with iss and launch, such as <code>http://localhost:3000/launch</code>. Leave it empty for an app that starts by itself.` })}
${renderScopePicker({
  legend: CLIENT_FIELDS.scope.label,
  hint: `The scopes that the app may request. Users allow them, or some of them.${client ? '' : ' Those that a first launch needs are selected. Add scopes for the data that the app reads.'}`,
  groups: ALL_SCOPES,
  chosen: form.get('scope') ?? '',
  error: faults?.get('scope'),
})}
${renderMethods(options)}
<div class="fields appform__keys">
${field('jwksUrl')}
${field('jwks', { rows: 3, hint: 'Or the key set itself, as JSON: public keys only.' })}
</div>
<details class="more"${hasFaultBelow(options) && html` open`}><summary>More options</summary><div class="stack stack--tight launch__more">
${!client && field('id', { hint: 'If empty, the server generates an id.' })}
${BELOW.map(({ property, hint, kind }) => field(property, { hint, ...(kind === 'list' && { rows: 2 }) }))}
<div class="choices">${box('pkce', 'optional', 'PKCE is optional', 'The app may omit code_challenge, as apps written for SMART 1 do.')}${box('iss', 'omit', 'Omit iss from authorization responses', 'For apps that mistake this parameter (RFC 9207) for the start of a launch.')}${isAdministrator && box('first_party', '1', 'First-party', 'An app of your own organization: its users are not asked for consent.')}</div>
</div></details>
<div class="actions"><button class="btn">${client ? 'Save changes' : 'Register app'}</button><a class="btn btn--quiet" href="${cancel}">Cancel</a></div>
</form>`
}

const METHODS = [
  ['none', 'Public', 'A browser or native app, with PKCE and without a secret.'],
  ['client_secret', 'With a secret', 'An app with a server. The secret is shown once.'],
  [
    'private_key_jwt',
    'With keys',
    'An app with a server that signs (private_key_jwt), or a backend service.',
  ],
] as const

function renderMethods({ form, faults, client }: AppFormOptions): Html {
  const { field: name, label } = CLIENT_FIELDS.authMethod
  const replacesSecret =
    client?.authMethod === 'client_secret' &&
    html`<label class="choice appform__secret"><input type="checkbox" name="new_secret" value="1"${form.get('new_secret') === '1' && html` checked`}><span class="choice__main">Replace the secret</span><span class="choice__meta">The app cannot authenticate with the old one from then on.</span></label>`
  return html`<fieldset${faults?.has(name) && html` aria-describedby="${name}-error"`}><legend class="legend">${label}</legend><div class="choices">${METHODS.map(
    ([value, text, meta]) =>
      renderChoice({ type: 'radio', name, value, text, meta, isChecked: form.get(name) === value }),
  )}${replacesSecret}</div>${
    faults?.has(name) && html`<p class="field__error" id="${name}-error">${faults.get(name)}</p>`
  }</fieldset>`
}

const MAIN: readonly PlainProperty[] = ['name', 'redirectUris', 'launchUrl']

/** Below "More options". */
const BELOW = TEXT_FIELDS.filter(({ property }) => !MAIN.includes(property))

function hasFaultBelow({ faults }: AppFormOptions): boolean {
  return [CLIENT_FIELDS.id, ...BELOW].some(({ field }) => faults?.has(field))
}

export function renderFaultAlert({ client, faults }: Pick<AppFormOptions, 'client' | 'faults'>): Html {
  const what = faults?.size === 1 ? 'Correct the marked field.' : 'Correct the marked fields.'
  return renderAlert(client ? 'Not saved.' : 'Not registered.', what, 'bad')
}

/** Every wrong value of a field, each once. */
function describeFaults(faults: readonly ClientFault[]): string {
  return [...new Set(faults.map(describeFault))].slice(0, NAMED_FAULTS).join('\n')
}

function describeFault(fault: ClientFault): string {
  const { text } = nameValue(fault)
  return fault.value === undefined ? toSentence(text) : `${text}.`
}
