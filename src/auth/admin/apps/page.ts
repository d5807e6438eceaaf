import { randomUUID } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import { isFailure } from '../../../core/index.ts'
import { type Html, html } from '../../../web/ui/index.ts'
import { paths } from '../../base/paths.ts'
import { type Client, toClient } from '../../oauth/clients/client.ts'
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
import { failAdmin } from '../base/action.ts'
import { defineArea } from '../subject/area.ts'
import { findRow } from '../subject/details.ts'
import type { AdminRequest, AdminRoute } from '../subject/page/route.ts'
import { renderAdminPage } from '../subject/page/shell.ts'
import { buildAppPath, SECTION } from './client-list.ts'
import { addClient, changeClient, failProperty, nameOperation } from './clients.ts'
import { APPS, showChanged } from './subject.ts'

/** The forms of an app. */
const formRoutes: readonly AdminRoute[] = [
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
    path: '/apps/:id/edit',
    operation: nameOperation('set'),
    async handle(request) {
      const row = await findRow(APPS, request)
      if (isFailure(row)) return row
      const client = toClient(row)
      return renderFormPage(request, { form: fillAppForm(client), client })
    },
  },
  {
    method: 'POST',
    path: '/apps/:id/edit',
    operation: nameOperation('set'),
    async handle(request) {
      const { admin, form } = request
      const row = await findRow(APPS, request)
      if (isFailure(row)) return row
      if (row.isConfigured) return failAdmin('client-not-shown')
      const read = readAppForm(form, { isAdministrator: true })
      const changed = isFailure(read) ? failProperty(read) : await changeClient(admin, row.client_id, read)
      return isFailure(changed) && changed.fault
        ? sendFaults(request, changed.fault, toClient(row))
        : showChanged(request, changed, 'saved')
    },
  },
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

export const APP_AREA = defineArea(APPS, { routes: formRoutes })
