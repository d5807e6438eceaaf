import { randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Kysely } from 'kysely'
import { isFailure, toSentence } from '../../core/index.ts'
import type { Schema } from '../../store/index.ts'
import {
  addClient,
  type ChangedClient,
  changeClient,
  failProperty,
  removeClient,
} from '../admin/apps/clients.ts'
import { type Admin, type AdminFailure, makeAdmin } from '../admin/base/action.ts'
import { type Parameters, readParameters } from '../base/request.ts'
import { type Client, findClient, findStoredRow, toClient } from '../oauth/clients/client.ts'
import { listRegisteredClients } from '../oauth/clients/store-client.ts'
import { CLIENT_DEFAULTS } from '../oauth/clients/validate.ts'
import type { AuthContext } from '../oauth/context.ts'
import {
  fillAppForm,
  listFormFaults,
  NEW_APP,
  readAppForm,
  readAppParameters,
} from '../pages/parts/app-form/form.ts'
import { listLogos } from '../pages/parts/apps.ts'
import { findSearchFault } from '../patients/queries.ts'
import { findLoginByHash, type Login } from '../users/find-login.ts'
import { requireClinician } from '../users/login.ts'
import { isDeveloper } from '../users/login-rights.ts'
import {
  buildUrl,
  isFixed,
  renderAppFormPage,
  renderAppsPage,
  renderRemoveAppPage,
  renderStoredApp,
} from './apps-page.ts'
import { labPaths } from './paths.ts'

/** `/apps`: developers register apps in the browser. Add these routes only on loopback (LAB-8). */
export function addAppRoutes(app: FastifyInstance, context: AuthContext): void {
  const { settings, store } = context

  app.get(
    labPaths.apps,
    requireClinician(context, async (request, reply, login) => {
      const query = readParameters(request.query)
      const search = query.get('search')?.trim() || undefined
      const fault = findSearchFault(search)
      if (fault) return reply.sendProblem({ kind: 'malformed', text: toSentence(fault.text) })
      const page = /^\d{1,4}$/.test(query.get('page') ?? '') ? Number(query.get('page')) : 0
      const listed = await listRegisteredClients(store, { text: search, page })
      const view = { ...listed, page, search, removed: query.get('removed') === '1' }
      return reply.sendPage(renderAppsPage(context, login, view))
    }),
  )

  app.get(
    labPaths.appsNew,
    requireClinician(context, async (_request, reply, login) =>
      reply.sendPage(renderAppFormPage(context, login, { form: NEW_APP })),
    ),
  )

  app.post(
    labPaths.appsNew,
    requireClinician(context, async (request, reply, login) => {
      const form = readAppParameters(request.body)
      const app = readAppForm(form, { isAdministrator: false })
      const id = form.get('client_id')?.trim() || randomUUID()
      const result = isFailure(app)
        ? failProperty(app)
        : await addClient(asDeveloper(context, request, login), id, { ...CLIENT_DEFAULTS, ...app })
      return sendResult(reply, login, result, { form })
    }),
  )

  app.post(
    labPaths.appsCheck,
    requireClinician(context, async (request, reply) => {
      const form = readAppParameters(request.body)
      const faults = new Map(listFormFaults(form, { isAdministrator: false }))
      const id = form.get('client_id')?.trim()
      if (id !== undefined && !faults.has('client_id') && (await findStoredRow(store.db, id)))
        faults.set('client_id', 'The id is taken.')
      return reply.send({ faults: Object.fromEntries(faults) })
    }),
  )

  app.get(
    labPaths.appsCode,
    requireClinician(context, async (request, reply, login) => {
      const named = readParameters(request.query).get('client')
      const client = named === undefined ? undefined : await findClient(store.db, context, named)
      return client
        ? reply.sendPage(renderStoredApp(context, login, { client, secret: undefined, event: undefined }))
        : reply.redirect(labPaths.apps, 302)
    }),
  )

  app.get(
    labPaths.appsEdit,
    requireApp(async (_request, reply, login, client) =>
      reply.sendPage(renderAppFormPage(context, login, { form: fillAppForm(client), client })),
    ),
  )

  app.post(
    labPaths.appsEdit,
    requireApp(async (request, reply, login, client) => {
      const form = readAppParameters(request.body)
      const changes = readAppForm(form, { isAdministrator: false })
      const result = isFailure(changes)
        ? failProperty(changes)
        : await changeClient(asDeveloper(context, request, login), client.id, changes)
      return sendResult(reply, login, result, { form, client })
    }),
  )

  app.get(
    labPaths.appsRemove,
    requireApp(async (_request, reply, login, client) =>
      reply.sendPage(renderRemoveAppPage(context, login, client), { images: listLogos(client) }),
    ),
  )

  app.post(
    labPaths.appsRemove,
    requireApp(async (request, reply, login, { id }) => {
      const removed = await removeClient(asDeveloper(context, request, login), id)
      return reply.redirect(isFailure(removed) ? labPaths.apps : `${labPaths.apps}?removed=1`, 303)
    }),
  )

  /** Finds the app that the request names, if it may change here. */
  function requireApp(
    handle: (
      request: FastifyRequest,
      reply: FastifyReply,
      login: Login,
      client: Client,
    ) => Promise<FastifyReply>,
  ) {
    return requireClinician(context, async (request, reply, login) => {
      const named = readParameters(request.method === 'GET' ? request.query : request.body).get('client')
      const client = named === undefined ? undefined : await findClient(store.db, context, named)
      if (client && !isFixed(settings, client)) return handle(request, reply, login, client)
      // The page of the app says why it cannot change.
      return reply.redirect(
        client ? buildUrl(labPaths.appsCode, client) : labPaths.apps,
        request.method === 'GET' ? 302 : 303,
      )
    })
  }

  function sendResult(
    reply: FastifyReply,
    login: Login,
    result: ChangedClient | AdminFailure,
    { form, client }: { readonly form: Parameters; readonly client?: Client },
  ): FastifyReply {
    if (isFailure(result) && result.fault) {
      const faults = listFormFaults(form, { isAdministrator: false }, result.fault)
      const page = renderAppFormPage(context, login, { form, faults, client })
      return reply.sendPage(page, { status: 400 })
    }
    if (isFailure(result)) return reply.redirect(labPaths.apps, 303)
    const stored = {
      client: toClient(result.client),
      secret: result.secret,
      event: client ? 'Changes saved.' : 'App registered.',
    }
    return reply.sendPage(renderStoredApp(context, login, stored))
  }
}

/** The acts of a developer are recorded like those of administrators. */
function asDeveloper(context: AuthContext, request: FastifyRequest, { user, idHash }: Login): Admin {
  const { id, fhirUserId } = user
  const mayAct = async (db: Kysely<Schema>) => {
    const login = await findLoginByHash(db, context, idHash)
    return login !== undefined && isDeveloper(context.settings, login)
  }
  const actor = { kind: 'developer', method: 'lab', id, fhirUserId } as const
  return makeAdmin(context, request, { actor, mayAct, isForLoopback: context.rules.onLoopback })
}
