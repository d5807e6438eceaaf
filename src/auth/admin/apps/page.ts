import { randomUUID } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import { isFailure } from '../../../core/index.ts'
import { type Html, html } from '../../../web/ui/index.ts'
import { paths } from '../../base/paths.ts'
import { type Client, isConfigured } from '../../oauth/clients/client.ts'
import { CLIENT_DEFAULTS, type ClientFault } from '../../oauth/clients/validate.ts'
import {
  type AppFormOptions,
  fillAppForm,
  listFormFaults,
  NEW_APP,
  readAppForm,
  renderAppForm,
  renderFaultAlert,
} from '../../pages/parts/app-form/form.ts'
import { isProgramScope } from '../../words/program-scopes.ts'
import { REVOKED, renderGrants } from '../access/grants-page.ts'
import { listDetails } from '../subject/columns.ts'
import { defineListRoutes } from '../subject/list-page.ts'
import { defineOperationRoutes } from '../subject/operations.ts'
import type { AdminRequest, AdminRoute } from '../subject/page/route.ts'
import {
  readDone,
  renderActionLinks,
  renderAdminPage,
  renderAuditLinks,
  renderFacts,
} from '../subject/page/shell.ts'
import { buildAppPath, CLIENT_COLUMNS, CLIENTS, DONE, findListed, SECTION } from './client-list.ts'
import {
  addClient,
  CLIENT_OPERATIONS,
  type ClientRow,
  changeClient,
  failProperty,
  findClientRow,
  nameOperation,
} from './clients.ts'
import { APPS, failUnknown, findApp, showChanged } from './subject.ts'

/** `/admin/apps`: registered apps. */
export const appRoutes: readonly AdminRoute[] = [
  ...defineListRoutes(CLIENTS),
  {
    method: 'GET',
    path: '/apps/new',
    operation: nameOperation('add'),
    handle: async request => renderFormPage(request, { form: NEW_APP }),
  },
  {
    method: 'POST',
    path: '/apps/new',
    operation: nameOperation('add'),
    async handle(request) {
      const { admin, form } = request
      const app = readAppForm(form, { isAdministrator: true })
      const id = form.get('client_id')?.trim() || randomUUID()
      const added = isFailure(app)
        ? failProperty(app)
        : await addClient(admin, id, { ...CLIENT_DEFAULTS, ...app })
      return isFailure(added) && added.fault
        ? sendFaults(request, added.fault)
        : showChanged(request, added, 'registered')
    },
  },
  {
    method: 'GET',
    path: '/apps/:id',
    async handle(request) {
      const row = await findClientRow(request.admin, request.params.id ?? '')
      const client = await findApp(request)
      return isFailure(row) || !client ? failUnknown() : renderAppPage(request, client, row)
    },
  },
  {
    method: 'GET',
    path: '/apps/:id/edit',
    operation: nameOperation('set'),
    async handle(request) {
      const client = await findApp(request)
      return client ? renderFormPage(request, { form: fillAppForm(client), client }) : failUnknown()
    },
  },
  {
    method: 'POST',
    path: '/apps/:id/edit',
    operation: nameOperation('set'),
    async handle(request) {
      const { admin, form } = request
      const client = await findApp(request)
      if (!client || isConfigured(request.context.settings, client)) return failUnknown()
      const read = readAppForm(form, { isAdministrator: true })
      const changed = isFailure(read) ? failProperty(read) : await changeClient(admin, client.id, read)
      return isFailure(changed) && changed.fault
        ? sendFaults(request, changed.fault, client)
        : showChanged(request, changed, 'saved')
    },
  },
  ...defineOperationRoutes(APPS),
]

function sendFaults(request: AdminRequest, fault: ClientFault, client?: Client): FastifyReply {
  const { form, reply } = request
  const faults = listFormFaults(form, { isAdministrator: true }, fault)
  return reply.sendPage(renderFormPage(request, { form, faults, client }), { status: 400 })
}

function renderFormPage(
  request: AdminRequest,
  options: Pick<AppFormOptions, 'form' | 'faults' | 'client'>,
): Html {
  const { client, faults } = options
  const path = client ? `${buildAppPath(client.id)}/edit` : '/apps/new'
  const cancel = `${paths.admin}${client ? buildAppPath(client.id) : '/apps'}`
  return renderAdminPage(
    request,
    {
      section: SECTION,
      title: client ? `Change ${client.name}` : 'Register an app',
      lead: client && 'New scopes end the access that users gave the app: they have to consent again.',
    },
    html`${faults && renderFaultAlert(options)}
${renderAppForm({ ...options, action: `${paths.admin}${path}`, cancel, isAdministrator: true })}`,
  )
}

async function renderAppPage(request: AdminRequest, client: Client, row: ClientRow): Promise<Html> {
  const { admin, context } = request
  const listed = await findListed(admin, [row])
  const isFixed = isConfigured(context.settings, client)
  return renderAdminPage(
    request,
    {
      section: SECTION,
      title: client.name,
      lead: client.description,
      actions: renderActionLinks(
        request,
        buildAppPath(client.id),
        { ...row, isConfigured: isFixed },
        CLIENT_OPERATIONS,
      ),
      done: readDone(request, { ...DONE, revoked: REVOKED }),
    },
    html`${renderFacts([
      ...listed.flatMap(one => listDetails(CLIENT_COLUMNS, one, request)),
      [
        'Audit',
        renderAuditLinks(
          ['Records of this app', { app: client.id }],
          ['Changes to this app', { target: `app/${client.id}` }],
        ),
      ],
    ])}
${
  !isProgramScope(client.scope) &&
  html`<h2 class="section__title subhead">Users who gave access</h2>
${await renderGrants(request, { clientIds: [client.id] }, buildAppPath(client.id))}`
}`,
  )
}
