import { findOwn } from '../../../../core/index.ts'
import { parseScope, type ResourceScope } from '../../../../smart/index.ts'
import { type Html, html, renderField } from '../../../../web/ui/index.ts'
import { OFFERED_TYPES } from '../../../words/offered.ts'
import { describeKind, describePermissions, describeScope } from '../../../words/scopes.ts'

interface OfferedScope {
  readonly scope: string
  readonly text: string
}

/** Scopes that belong together, such as those of one context. */
export interface ScopeGroup {
  readonly title: string
  readonly text: string
  readonly scopes: readonly OfferedScope[]
}

/** What the scopes mean that name no data (SMART 2.2, scopes). */
const PLAIN: Readonly<Record<string, string>> = {
  openid: 'The app gets an ID token: who signed in.',
  fhirUser: 'The ID token names the Practitioner, Patient or RelatedPerson of the user. Needs openid.',
  profile: 'The ID token has the name of the user. Needs openid.',
  launch: 'The app can be launched from the portal, with its patient.',
  'launch/patient': 'If the app starts by itself, the user chooses a patient.',
  'launch/encounter': 'The app gets the encounter, if one is chosen.',
  online_access: 'The app can refresh its token until the user signs out.',
  offline_access: 'The app can refresh its token after the user has signed out.',
}

const CONTEXTS = {
  patient: ['Record of one patient', 'Only the patient of the launch.'],
  user: ['Records of all patients', 'Every patient that the user may see.'],
  system: ['Backend service', 'Every patient, without a user. The app needs keys.'],
} as const

const ACTS = { rs: 'read', cud: 'write' } as const

/** All scopes that a form offers. Others are typed. */
export const ALL_SCOPES: readonly ScopeGroup[] = [
  { title: 'Sign-in and launch', text: 'Who the user is, and how the app is opened.', scopes: listPlain() },
  ...Object.entries(CONTEXTS).flatMap(([context, [title, text]]) =>
    Object.entries(ACTS).map(([permissions, act]) => ({
      title: `${title}: ${act}`,
      text,
      scopes: ['*', ...OFFERED_TYPES].map(type => describeOffered(`${context}/${type}.${permissions}`)),
    })),
  ),
]

function listPlain(): readonly OfferedScope[] {
  return Object.entries(PLAIN).map(([scope, text]) => ({ scope, text }))
}

/** The scopes of an app, and the parts of its wildcards. */
export function listScopesOf(scope: string): readonly ScopeGroup[] {
  const own = scope.split(' ').filter(part => part !== '')
  const wildcards = own.flatMap(text => {
    const parsed = parseScope(text)
    return parsed?.kind === 'resource' && parsed.type === '*' && parsed.query.length === 0 ? [parsed] : []
  })
  return [
    { title: 'Scopes of the app', text: 'As registered.', scopes: own.map(describeOffered) },
    ...wildcards.map(wildcard => ({
      title: `Parts of ${wildcard.text}`,
      text: CONTEXTS[wildcard.context][1],
      scopes: OFFERED_TYPES.map(type => describeOffered(wildcard.text.replace('*', type))),
    })),
  ]
}

function describeOffered(scope: string): OfferedScope {
  const parsed = parseScope(scope)
  return {
    scope,
    text:
      parsed?.kind === 'resource'
        ? describeData(parsed)
        : (findOwn(PLAIN, scope) ?? 'A scope of this server.'),
  }
}

function describeData(scope: ResourceScope): string {
  const does = describePermissions(scope.permissions, 's')
  return `${does}: ${scope.query.length === 0 ? `${describeKind(scope.type).title}. ${describeKind(scope.type).text}` : describeScope(scope)}`
}

interface ScopePickerOptions {
  readonly legend: string
  readonly hint: string
  readonly groups: readonly ScopeGroup[]
  /** Separated by spaces. */
  readonly chosen: string
  readonly error?: string | undefined
}

/** Scopes as boxes with their meaning, and a field for others. All of them are sent as `scope`. */
export function renderScopePicker({ legend, hint, groups, chosen, error }: ScopePickerOptions): Html {
  const all = new Set(chosen.split(/\s+/).filter(scope => scope !== ''))
  const offered = new Set(groups.flatMap(({ scopes }) => scopes.map(({ scope }) => scope)))
  const others = [...all].filter(scope => !offered.has(scope)).join(' ')
  const group = ({ title, text, scopes }: ScopeGroup) =>
    html`<details class="more scopes"${scopes.some(({ scope }) => all.has(scope)) && html` open`}><summary>${title}</summary><div><p class="small muted">${text}</p><div class="choices choices--grid">${scopes.map(
      one => renderBox(one, all.has(one.scope)),
    )}</div></div></details>`
  return html`<fieldset class="stack stack--tight" aria-describedby="scope-about"><legend class="legend">${legend}</legend>
<p class="field__hint" id="scope-about">${hint}</p>
${groups.filter(({ scopes }) => scopes.length > 0).map(group)}
${renderField({ name: 'scope', label: 'Other scopes', value: others, error, autofocus: error !== undefined, hint: html`Separated by spaces, such as <code>patient/Observation.rs?category=vital-signs</code>.` })}
</fieldset>`
}

function renderBox({ scope, text }: OfferedScope, isChecked: boolean): Html {
  return html`<label class="choice"><input type="checkbox" name="scope" value="${scope}"${isChecked && html` checked`}><span class="choice__main"><code>${scope}</code></span><span class="choice__meta">${text}</span></label>
`
}
