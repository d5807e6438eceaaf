import { Type } from 'typebox'
import { Members } from '../../../endpoint/index.ts'
import { type Html, html } from '../../../web/ui/index.ts'
import type { Applied } from '../../base/context.ts'
import { areAgentsOff } from '../../oauth/grants/agents-switch.ts'
import { type Area, defineArea } from '../subject/area.ts'
import { listDetails, readCells } from '../subject/columns.ts'
import type { AdminRequest, AdminRoute } from '../subject/page/route.ts'
import { readDone, renderAdminPage, renderButton, renderFacts, renderTable } from '../subject/page/shell.ts'
import type { Subject } from '../subject/subject.ts'
import { SERVER_COLUMNS, SYSTEM_COLUMNS } from './describe-system.ts'
import {
  findServers,
  POLICY_CHANGED,
  RELOAD_SETTINGS,
  reloadSettings,
  SETTINGS_CHANGED,
  systemEndpoints,
} from './system.ts'

/** `GET /admin/system`: state, versions and settings of the servers. */
const systemRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/system',
    async handle(request) {
      const { context, mayChange } = request
      const servers = await findServers(request.request.server, context)
      const hasAgents = context.settings.agents.enabled
      const next = hasAgents && (await areAgentsOff(context.store.db)) ? 'on' : 'off'
      return renderAdminPage(
        request,
        {
          section: 'system',
          title: 'System',
          lead: 'State, versions and settings of the servers.',
          actions: renderReloadLink(request),
          done: readDone(request, DONE),
        },
        html`${renderTable('Servers', heads, servers.map(renderRow))}
<h2 class="section__title subhead">Versions and settings</h2>
${renderFacts(listDetails(SYSTEM_COLUMNS, context, request))}
${hasAgents && renderAgents(next, mayChange)}`,
      )
    },
  },
]

/** The settings of the servers, and the policy file. */
const SETTINGS: Subject<never, string, Applied> = {
  name: 'settings',
  operations: {
    reload: {
      signIn: RELOAD_SETTINGS.signIn,
      isOnAll: true,
      api: {
        title: 'Reload the policy file',
        description:
          'Also the sign-in providers and the certificates. If anything is invalid, nothing changes (409). Other instances read their own files within seconds.',
      },
      page: {
        title: () => 'Reload the settings?',
        text: 'The servers reload the policy file, the sign-in providers, who needs a second factor, the log level and the certificates. If anything is invalid, nothing changes.',
        button: 'Reload settings',
        isDangerous: false,
      },
      perform: (admin, _target, _input, { controls }) => reloadSettings(admin, controls),
    },
  },
  toTarget: name => name,
  api: {
    path: '/policy/:name',
    result: Members({
      changed: Type.Array(Type.String(), {
        description: 'Settings, providers and files whose change is in effect, by name.',
      }),
      need_restart: Type.Array(Type.String(), { description: 'Changed settings that need a restart.' }),
    }),
    describe: ({ changed, needRestart }) => ({ changed: [...changed], need_restart: [...needRestart] }),
  },
  pages: { section: 'system', path: '/:name', home: '/system', show: renderReloaded },
}

export const SETTINGS_AREA = defineArea(SETTINGS)

export const SYSTEM_AREA: Area = {
  routes: systemRoutes,
  endpoints: systemEndpoints,
  operations: [POLICY_CHANGED, SETTINGS_CHANGED],
}

const DONE: Readonly<Record<string, string>> = {
  'agents-off': 'Assistants are off. Within seconds, every server refuses them.',
  'agents-on': 'Assistants are on. They may ask for access again.',
}

function renderAgents(next: 'on' | 'off', mayChange: boolean): Html {
  const state =
    next === 'on'
      ? 'They are switched off: every server refuses them.'
      : 'They may ask people for access to records.'
  return html`<h2 class="section__title subhead">Assistants</h2>
<p>${state}</p>${mayChange && html`<p>${renderButton(`/agents/${next}`, `Switch assistants ${next}`)}</p>`}`
}

export function renderReloadLink({ mayChange }: AdminRequest): Html | undefined {
  return mayChange ? renderButton('/reload', 'Reload settings') : undefined
}

function renderReloaded(request: AdminRequest, { changed, needRestart }: Applied): Html {
  const renderNames = (title: string, names: readonly string[]) =>
    names.length > 0 &&
    html`<p>${title}</p><ul class="bullets">${names.map(name => html`<li><code>${name}</code></li>`)}</ul>`
  const back = renderButton('/system', 'System')
  return renderAdminPage(
    request,
    { section: 'system', title: 'Settings', done: 'The settings are reloaded.', actions: back },
    html`${changed.length === 0 && html`<p>${needRestart.length === 0 ? 'Nothing changed.' : 'Nothing has changed that takes effect without a restart.'}</p>`}
${renderNames('In effect now:', changed)}
${renderNames('Changed since the start, and in effect only after a restart:', needRestart)}`,
  )
}

const { heads, renderRow } = readCells(SERVER_COLUMNS)
