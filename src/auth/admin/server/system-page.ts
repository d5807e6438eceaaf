import { isFailure } from '../../../core/index.ts'
import { type Html, html, renderBadge, renderDateTime } from '../../../web/ui/index.ts'
import type { Applied } from '../../base/context.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { AdminRequest, AdminRoute } from '../page/route.ts'
import { defineAction, renderAdminPage, renderFacts, renderLink, renderTable } from '../page/shell.ts'
import { describeSystem, findServers, RELOAD_SETTINGS, reloadSettings, type ServerState } from './system.ts'

/** `GET /admin/system`: state, versions and settings of the servers. */
export const systemRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/system',
    async handle(request) {
      const servers = await findServers(request.request.server, request.context)
      return renderAdminPage(
        request,
        {
          section: 'system',
          title: 'System',
          lead: 'State, versions and settings of the servers.',
          actions: renderReloadLink(request),
        },
        html`${renderTable('Servers', ['Server', 'State', 'Checks', 'URL'], servers.map(renderServer))}
<h2 class="section__title subhead">Versions and settings</h2>
${renderFacts(listFacts(request.context))}`,
      )
    },
  },
  ...defineAction({
    path: '/reload',
    operation: RELOAD_SETTINGS,
    ask: async () => ({
      section: 'system',
      title: 'Reload the settings?',
      text: 'The servers reload the policy file, the sign-in providers, who needs a second factor, the log level and the certificates. If anything is invalid, nothing changes.',
      button: 'Reload settings',
      back: '/system',
      isDangerous: false,
    }),
    async perform(request) {
      const reloaded = await reloadSettings(request.admin, request.context)
      return isFailure(reloaded) ? reloaded : renderReloaded(request, reloaded)
    },
  }),
]

export function renderReloadLink({ mayChange }: AdminRequest): Html | undefined {
  return mayChange ? renderLink('/reload', 'Reload settings', 'btn btn--quiet btn--small') : undefined
}

function renderReloaded(request: AdminRequest, { changed, needRestart }: Applied): Html {
  const renderNames = (title: string, names: readonly string[]) =>
    names.length > 0 &&
    html`<p>${title}</p><ul class="bullets">${names.map(name => html`<li><code>${name}</code></li>`)}</ul>`
  const back = renderLink('/system', 'System', 'btn btn--quiet btn--small')
  return renderAdminPage(
    request,
    { section: 'system', title: 'Settings', done: 'The settings are reloaded.', actions: back },
    html`${changed.length === 0 && html`<p>${needRestart.length === 0 ? 'Nothing changed.' : 'Nothing has changed that takes effect without a restart.'}</p>`}
${renderNames('In effect now:', changed)}
${renderNames('Changed since the start, and in effect only after a restart:', needRestart)}`,
  )
}

const NAMES: Readonly<Record<ServerState['name'], string>> = {
  auth: 'Auth server',
  fhir: 'FHIR server',
  app: 'App server',
}

function renderServer({ name, url, checks, processes = 1 }: ServerState) {
  const failed = checks?.filter(({ ok }) => !ok) ?? []
  const passed = [...new Set(checks?.map(({ name: check, note }) => (note ? `${check} (${note})` : check)))]
  return [
    html`${NAMES[name]}${processes > 1 && html`<span class="sub">${processes} processes</span>`}`,
    renderState(checks),
    failed.length > 0
      ? html`${failed.map(({ name: check, reason }) => html`<p>${check}: ${reason ?? 'failed'}</p>`)}`
      : passed.join(', ') || 'None',
    html`<span class="url">${url}</span>`,
  ]
}

function renderState(checks: ServerState['checks']) {
  if (!checks) return renderBadge('No response', 'bad')
  return checks.every(({ ok }) => ok) ? renderBadge('Ready', 'ok') : renderBadge('Not ready', 'bad')
}

function listFacts(context: AuthContext) {
  const system = describeSystem(context)
  const { openRegistration, registrationToken } = context.settings
  return [
    ['Sallyport', system.version],
    ['Node.js', system.node],
    ['Running since', renderDateTime(system.startedAt)],
    ['Database', system.database === 'sqlite' ? 'SQLite' : 'PostgreSQL'],
    ['FHIR data', system.upstreamUrl ?? 'Embedded FHIR server'],
    ['Sign-in', [...(system.passwords ? ['passwords'] : []), ...system.providers].join(', ')],
    ['Second factor', SECOND_FACTOR[context.providers.secondFactor]],
    ['Policy', describePolicy(system.policyRules)],
    ['Audit trail', system.audit ? 'On' : 'Off'],
    ['Log level', system.logLevel],
    ['Apps register themselves', describeRegistration(openRegistration, registrationToken !== undefined)],
    ...system.features.map(({ title, isOn }) => [title, isOn ? 'On' : 'Off'] as const),
  ] as const
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

function describeRegistration(isOpen: boolean, hasToken: boolean): string {
  if (isOpen) return 'Yes, unverified until an administrator approves them'
  return hasToken ? 'With the registration token' : 'No'
}
