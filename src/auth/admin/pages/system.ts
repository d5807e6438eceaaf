import { isRecord } from '../../../fhir/index.ts'
import {
  type CheckResult,
  getGatherer,
  type Html,
  html,
  renderBadge,
  renderDateTime,
  version,
} from '../../../web/index.ts'
import type { AuthContext, Reloaded } from '../../context.ts'
import { recordAct } from '../act.ts'
import type { AdminRequest, AdminRoute } from './gate.ts'
import { defineAct, renderAdminPage, renderFacts, renderLink, renderTable } from './shell.ts'

/** `GET /admin`: the state of the servers, and what they run with. */
export const systemRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '',
    async handle(request) {
      const { context, reply } = request
      const servers = await findServers(request)
      return reply.sendPage(
        renderAdminPage(
          request,
          {
            section: 'system',
            title: 'System',
            lead: 'The servers now, and what they run with.',
            acts: renderLink('/reload', 'Reload settings', 'btn btn--quiet btn--small'),
          },
          html`${renderTable('Servers', ['Server', 'State', 'Checks', 'URL'], servers.map(renderServer))}
<h2 class="section__title subhead">Versions and settings</h2>
${renderFacts(listFacts(context))}`,
        ),
      )
    },
  },
  ...defineAct({
    path: '/reload',
    ask: async () => ({
      section: 'system',
      title: 'Reload the settings?',
      text: 'The servers read the policy file, the sign-in providers, the log level and the certificates again. If anything is invalid, nothing changes.',
      button: 'Reload settings',
      back: '',
      isDangerous: false,
    }),
    async perform(request) {
      const reloaded = await request.context.controls.reload()
      await recordAct(request.admin, 'settings reload', { after: { ...reloaded } })
      return renderReloaded(request, reloaded)
    },
  }),
]

function renderReloaded(request: AdminRequest, { problems, needRestart }: Reloaded): Html {
  const back = renderLink('', 'System', 'btn btn--quiet btn--small')
  if (problems)
    return renderAdminPage(
      request,
      { section: 'system', title: 'The settings are invalid', lead: 'Nothing changed.', acts: back },
      html`<div class="card card__body"><ul>${problems.map(problem => html`<li>${problem}</li>`)}</ul></div>`,
    )
  return renderAdminPage(
    request,
    { section: 'system', title: 'Settings', done: 'The settings are reloaded.', acts: back },
    needRestart.length === 0
      ? html`<p>They are in effect on all processes of this server.</p>`
      : html`<p>These changed settings need a restart:</p><ul>${needRestart.map(name => html`<li><code>${name}</code></li>`)}</ul>`,
  )
}

interface ServerState {
  readonly name: string
  readonly url: string
  /** Undefined if the server did not answer as Sallyport does. */
  readonly checks: readonly CheckResult[] | undefined
  readonly processes?: number
}

async function findServers({ context, request }: AdminRequest): Promise<readonly ServerState[]> {
  const { issuerUrl, fhirBaseUrl, appUrl } = context.settings
  const [own, fhir, app] = await Promise.all([
    getGatherer(request.server).readiness(),
    askReadiness(context, fhirBaseUrl),
    askReadiness(context, appUrl),
  ])
  return [
    { name: 'Auth server', url: issuerUrl, checks: own.flat(), processes: own.length },
    { name: 'FHIR server', url: fhirBaseUrl, checks: fhir },
    { name: 'App server', url: appUrl, checks: app },
  ]
}

const WAIT_MS = 2000

/** Asks `/readyz` of another server, which runs on a host of its own. */
async function askReadiness(
  { fetch }: AuthContext,
  baseUrl: string,
): Promise<readonly CheckResult[] | undefined> {
  try {
    const signal = AbortSignal.timeout(WAIT_MS)
    const response = await fetch(new URL('/readyz', baseUrl), { signal, redirect: 'manual' })
    const body: unknown = await response.json()
    const checks = isRecord(body) && Array.isArray(body.checks) ? body.checks : undefined
    return checks?.filter(isCheckResult)
  } catch {
    return undefined
  }
}

function isCheckResult(value: unknown): value is CheckResult {
  return isRecord(value) && typeof value.name === 'string' && typeof value.ok === 'boolean'
}

function renderServer({ name, url, checks, processes = 1 }: ServerState) {
  const failed = checks?.filter(({ ok }) => !ok) ?? []
  const names = [...new Set(checks?.map(check => check.name))]
  return [
    html`${name}${processes > 1 && html`<span class="sub">${processes} processes</span>`}`,
    renderState(checks),
    failed.length > 0
      ? html`${failed.map(({ name: check, reason }) => html`<p>${check}: ${reason ?? 'failed'}</p>`)}`
      : names.join(', ') || 'None',
    html`<span class="url">${url}</span>`,
  ]
}

function renderState(checks: ServerState['checks']) {
  if (!checks) return renderBadge('No response', 'bad')
  return checks.every(({ ok }) => ok) ? renderBadge('Ready', 'ok') : renderBadge('Not ready', 'bad')
}

function listFacts({ settings, store, providers, userFilter, clock }: AuthContext) {
  const { fhir, login, audit, lab, openRegistration, registrationToken } = settings
  const ways = [...(login.passwords ? ['Passwords'] : []), ...providers.all.map(({ name }) => name)]
  return [
    ['Sallyport', version],
    ['Node.js', process.version],
    ['Running since', renderDateTime(clock() - process.uptime() * 1000)],
    ['Database', store.dialect === 'sqlite' ? 'SQLite' : 'PostgreSQL'],
    ['FHIR data', fhir.upstreamUrl ?? 'Embedded FHIR server'],
    ['Sign-in', ways.join(', ')],
    ['Policy', userFilter ? 'Policy file' : 'Every clinician may see every patient'],
    ['Audit trail', audit.kept ? 'On' : 'Off'],
    ['Apps register themselves', describeRegistration(openRegistration, registrationToken !== undefined)],
    ['Lab', lab ? 'On' : 'Off'],
  ] as const
}

function describeRegistration(isOpen: boolean, hasToken: boolean): string {
  if (isOpen) return 'Yes, unverified until an administrator approves them'
  return hasToken ? 'With the registration token' : 'No'
}
