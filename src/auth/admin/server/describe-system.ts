import { Type } from 'typebox'
import { FEATURES } from '../../../config/index.ts'
import { Members, OneOf, Time } from '../../../endpoint/index.ts'
import type { CheckResult } from '../../../web/http/index.ts'
import { html, renderBadge, version } from '../../../web/ui/index.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { SubjectColumns } from '../subject/columns.ts'

/** What is shown of the deployment: its versions and settings. */
export const SYSTEM_COLUMNS: SubjectColumns<AuthContext> = {
  version: { schema: Type.String(), of: () => version, detail: 'Sallyport' },
  node: { schema: Type.String(), of: () => process.version, detail: 'Node.js' },
  started_at: {
    schema: Time,
    of: ({ clock }) => clock() - process.uptime() * 1000,
    detail: 'Running since',
  },
  database: {
    schema: OneOf(['sqlite', 'postgres']),
    of: ({ store }) => store.dialect,
    detail: ['Database', ({ store }) => (store.dialect === 'sqlite' ? 'SQLite' : 'PostgreSQL')],
  },
  audit: {
    schema: Type.Boolean(),
    of: ({ settings }) => settings.audit.kept,
    detail: ['Audit trail', ({ settings }) => formatSwitch(settings.audit.kept)],
  },
  ...Object.fromEntries(
    FEATURES.map(({ name, title }) => [
      name,
      {
        schema: Type.Boolean(),
        of: ({ settings }: AuthContext) => settings[name],
        detail: [title, ({ settings }: AuthContext) => formatSwitch(settings[name])] as const,
      },
    ]),
  ),
  upstream_url: {
    schema: Type.Optional(Type.String()),
    of: ({ settings }) => settings.fhir.upstreamUrl,
    detail: ['FHIR data', ({ settings }) => settings.fhir.upstreamUrl ?? 'Embedded FHIR server'],
  },
  policy_rules: {
    schema: Type.Optional(Type.Integer()),
    of: ({ controls }) => controls.getPolicy()?.rules.length,
    detail: ['Policy', ({ controls }) => describePolicy(controls.getPolicy()?.rules.length)],
  },
  sign_in: {
    detail: [
      'Sign-in',
      ({ providers }) =>
        [...(providers.passwords ? ['passwords'] : []), ...providers.all.map(({ id }) => id)].join(', '),
    ],
  },
  second_factor: { detail: ['Second factor', ({ providers }) => SECOND_FACTOR[providers.secondFactor]] },
  registration: { detail: ['Apps register themselves', describeRegistration] },
  log_level: { detail: ['Log level', ({ controls }) => controls.getLogLevel()] },
}

function formatSwitch(isOn: boolean): string {
  return isOn ? 'On' : 'Off'
}

const SECOND_FACTOR = {
  none: 'Not required: users who added one need it',
  administrators: 'Required of administrators and auditors',
  all: 'Required of everyone with a password',
} as const

/** The policy in one sentence, from its number of rules. */
export function describePolicy(rules: number | undefined): string {
  if (rules === undefined) return 'No policy file: every clinician may see every patient.'
  return rules === 1 ? 'The policy file has 1 rule.' : `The policy file has ${rules} rules.`
}

function describeRegistration({ settings }: AuthContext): string {
  if (settings.openRegistration) return 'Yes, unverified until an administrator approves them'
  return settings.registrationToken === undefined ? 'No' : 'With the registration token'
}

export interface ServerState {
  readonly name: 'auth' | 'fhir' | 'app'
  readonly url: string
  /** Undefined if the server did not answer as Sallyport does. */
  readonly checks: readonly CheckResult[] | undefined
  /** Processes that serve the port. Undefined for a server that may be on another host. */
  readonly processes: number | undefined
}

const Check = Members({
  name: Type.String(),
  ok: Type.Boolean(),
  reason: Type.Optional(Type.String()),
  note: Type.Optional(Type.String({ description: 'The profile of the upstream in use.' })),
})

/** Each server, and its readiness. */
export const SERVER_COLUMNS: SubjectColumns<ServerState> = {
  name: {
    schema: Type.String(),
    of: 'name',
    page: [
      'Server',
      ({ name, processes = 1 }) =>
        html`${NAMES[name]}${processes > 1 && html`<span class="sub">${processes} processes</span>`}`,
    ],
  },
  reachable: { schema: Type.Boolean(), of: ({ checks }) => checks !== undefined },
  ready: { schema: Type.Boolean(), of: isReady, page: ['State', renderState] },
  processes: { schema: Type.Optional(Type.Integer()), of: 'processes' },
  checks: {
    schema: Type.Array(Check),
    of: ({ checks = [] }) => checks.map(({ name, ok, reason, note }) => ({ name, ok, reason, note })),
    page: ['Checks', renderChecks],
  },
  url: {
    schema: Type.String(),
    of: 'url',
    page: ['URL', ({ url }) => html`<span class="url">${url}</span>`],
  },
}

const NAMES: Readonly<Record<ServerState['name'], string>> = {
  auth: 'Auth server',
  fhir: 'FHIR server',
  app: 'App server',
}

export function isReady({ checks }: Pick<ServerState, 'checks'>): boolean {
  return checks?.every(({ ok }) => ok) ?? false
}

function renderState(server: ServerState) {
  if (!server.checks) return renderBadge('No response', 'bad')
  return isReady(server) ? renderBadge('Ready', 'ok') : renderBadge('Not ready', 'bad')
}

function renderChecks({ checks = [] }: ServerState) {
  const failed = checks.filter(({ ok }) => !ok)
  const passed = [...new Set(checks.map(({ name, note }) => (note ? `${name} (${note})` : name)))]
  return failed.length > 0
    ? html`${failed.map(({ name, reason }) => html`<p>${name}: ${reason ?? 'failed'}</p>`)}`
    : passed.join(', ') || 'None'
}
