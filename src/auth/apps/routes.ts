import { randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Transaction } from 'kysely'
import type { Schema } from '../../store/index.ts'
import { auditEvent } from '../audit.ts'
import { type Client, findClient } from '../client/client.ts'
import type { AuthContext } from '../context.ts'
import { type Login, requireClinician } from '../login/login.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { listLogos } from '../portal/apps.ts'
import { findSearchFault } from '../portal/patient-queries.ts'
import { fillAppForm, NEW_APP, readAppForm } from './form.ts'
import { addApp, changeApp, listApps, removeApp, type StoredApp } from './operations.ts'
import {
  isConfigured,
  renderAppFormPage,
  renderAppsPage,
  renderRemoveAppPage,
  renderStoredApp,
} from './page.ts'
import { APP_DEFAULTS, AppFault } from './validate.ts'

/** `/apps`: developers register apps in the browser. Add these routes only if the lab is on (LAB-8). */
export function addAppRoutes(app: FastifyInstance, context: AuthContext): void {
  const { settings, store } = context

  app.get(
    paths.apps,
    requireClinician(context, async (request, reply, login) => {
      const query = readParameters(request.query)
      const search = query.get('search')?.trim() || undefined
      const fault = findSearchFault(search)
      if (fault !== undefined) return reply.sendProblem({ kind: 'malformed', text: fault })
      const page = /^\d{1,4}$/.test(query.get('page') ?? '') ? Number(query.get('page')) : 0
      const view = { page, search, removed: query.get('removed') === '1' }
      return reply.sendPage(
        renderAppsPage({ settings, login }, { ...(await listApps(store, { text: search, page })), ...view }),
      )
    }),
  )

  app.get(
    paths.appsNew,
    requireClinician(context, async (_request, reply, login) =>
      reply.sendPage(renderAppFormPage({ settings, login }, { form: NEW_APP })),
    ),
  )

  app.post(
    paths.appsNew,
    requireClinician(context, async (request, reply, login) => {
      const form = readParameters(request.body)
      const app = readAppForm(form, { isAdministrator: false })
      const id = form.get('client_id')?.trim() || randomUUID()
      const add = (trx: Transaction<Schema>) =>
        app instanceof AppFault
          ? app
          : addApp(trx, id, { app: { ...APP_DEFAULTS, ...app }, now: context.clock() })
      const stored = await performAct(context, request, login, { act: `client add ${id}`, perform: add })
      return stored instanceof AppFault
        ? reply.sendPage(renderAppFormPage({ settings, login }, { form, fault: stored }), { status: 400 })
        : sendStored(reply, login, { stored, isNew: true })
    }),
  )

  app.get(
    paths.appsEdit,
    requireApp(async (_request, reply, login, client) =>
      reply.sendPage(renderAppFormPage({ settings, login }, { form: fillAppForm(client), client })),
    ),
  )

  app.post(
    paths.appsEdit,
    requireApp(async (request, reply, login, client) => {
      const form = readParameters(request.body)
      const changes = readAppForm(form, { isAdministrator: false })
      const change = (trx: Transaction<Schema>) =>
        changes instanceof AppFault ? changes : changeApp(trx, client.id, { changes, now: context.clock() })
      const act = `client set ${client.id}`
      const stored = await performAct(context, request, login, { act, perform: change })
      if (!stored) return reply.redirect(paths.apps, 303)
      return stored instanceof AppFault
        ? reply.sendPage(renderAppFormPage({ settings, login }, { form, fault: stored, client }), {
            status: 400,
          })
        : sendStored(reply, login, { stored, isNew: false })
    }),
  )

  app.get(
    paths.appsRemove,
    requireApp(async (_request, reply, login, client) =>
      reply.sendPage(renderRemoveAppPage({ settings, login }, client), { images: listLogos(client) }),
    ),
  )

  app.post(
    paths.appsRemove,
    requireApp(async (request, reply, login, { id }) => {
      const remove = (trx: Transaction<Schema>) => removeApp(trx, id, context.clock())
      await performAct(context, request, login, { act: `client remove ${id}`, perform: remove })
      return reply.redirect(`${paths.apps}?removed=1`, 303)
    }),
  )

  /** Finds the app that the request names. The settings describe the demo app, so it does not change here. */
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
      const client = named === undefined ? undefined : await findClient(store, named)
      return client && client.expiresAt === undefined && !isConfigured(settings, client)
        ? handle(request, reply, login, client)
        : reply.redirect(paths.apps, request.method === 'GET' ? 302 : 303)
    })
  }

  async function sendStored(
    reply: FastifyReply,
    login: Login,
    { stored, isNew }: { readonly stored: StoredApp; readonly isNew: boolean },
  ): Promise<FastifyReply> {
    const client = await findClient(store, stored.id)
    return client
      ? reply.sendPage(renderStoredApp({ settings, login }, { client, stored, isNew }))
      : reply.redirect(paths.apps, 303)
  }
}

/** Changes the registration and records the act, like a command of an administrator, in one transaction. */
function performAct<Result>(
  context: AuthContext,
  request: FastifyRequest,
  { clinician }: Login,
  { act, perform }: { readonly act: string; perform(trx: Transaction<Schema>): Promise<Result> | Result },
): Promise<Result> {
  return context.store.db.transaction().execute(async trx => {
    const result = await perform(trx)
    const event = { kind: 'admin', status: 200, clinician, method: 'lab', request: act } as const
    if (result && !(result instanceof AppFault)) await auditEvent(context, request, event, trx)
    return result
  })
}
