import type { FastifyInstance } from 'fastify'
import { isFailure } from '../../../core/index.ts'
import { auditEvent } from '../../base/audit.ts'
import { createNameReader } from '../../base/fhir-reader.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { type Parameters, readParameters } from '../../base/request.ts'
import { isPatientUser } from '../../base/user.ts'
import { findClient } from '../../oauth/clients/client.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { lookUpByIds } from '../../patients/patients.ts'
import type { Login } from '../../users/find-login.ts'
import { requireLogin } from '../../users/login.ts'
import { type AppAccess, findAccess, hasRecord, removeAccess } from '../parts/app-access.ts'
import { listLogos } from '../parts/apps.ts'
import { addOwnExportRoutes, listOwnExports } from './exports.ts'
import { readHistory } from './history.ts'
import { type KnownPatientNames, renderManagePage, renderRemovePage } from './page.ts'

/** `/manage` (SMART `management_endpoint`): a user sees the apps with access and can remove it. */
export function addManageRoutes(app: FastifyInstance, context: AuthContext): void {
  addOwnExportRoutes(app, context)
  const findLoginAccess = ({ user }: Login) => findAccess(context, user.id)

  app.get(
    paths.manage,
    requireLogin(context, async (request, reply, login) => {
      const access = await findLoginAccess(login)
      const query = readParameters(request.query)
      const removed = await findRemoved(context, access, query)
      const history = isPatientUser(login.user)
        ? await readHistory(context, login.user, query.get('before'))
        : undefined
      const more = [removed?.patient, ...(history?.past ?? []).map(({ patient }) => patient)]
      const names = await findPeople(context, login, access, more)
      const exports = await listOwnExports(context, login)
      const hasEndedExport = query.get('export') === 'ended'
      const view = { access, names, removed, history, exports, hasEndedExport }
      return reply.sendPage(renderManagePage(context, login, view))
    }),
  )

  app.get(
    paths.manageRemove,
    requireLogin(context, async (request, reply, login) => {
      const { client: wanted, patient } = readRemoval(readParameters(request.query))
      const access = (await findLoginAccess(login)).find(({ client }) => client.id === wanted)
      if (!access || (patient !== undefined && !hasRecord(access, patient)))
        return reply.redirect(paths.manage, 302)
      const names = await findPeople(context, login, [access])
      const page = renderRemovePage(context, login, access, { names, patient })
      return reply.sendPage(page, { images: listLogos(access.client) })
    }),
  )

  app.post(
    paths.manageRemove,
    requireLogin(context, async (request, reply, login) => {
      const { client, patient } = readRemoval(readParameters(request.body))
      const access = (await findLoginAccess(login)).find(one => one.client.id === client)
      // An app that opens every record would keep its access to this one.
      if (access && patient !== undefined && !hasRecord(access, patient))
        return reply.redirect(paths.manage, 303)
      const { user } = login
      const had = await context.store.db.transaction().execute(async trx => {
        const now = context.clock()
        const removed = await removeAccess(trx, { userId: user.id, clientId: client, patient, now })
        const event = { kind: 'revoke', status: 303, client, patient, user } as const
        if (removed) await auditEvent(context, request, event, trx)
        return removed
      })
      const query = new URLSearchParams({ removed: client, ...(patient !== undefined && { patient }) })
      return reply.redirect(had ? `${paths.manage}?${query}` : paths.manage, 303)
    }),
  )
}

function readRemoval(parameters: Parameters) {
  return { client: parameters.get('client') ?? '', patient: parameters.get('patient') }
}

/** Only if it is true: the app may have access again when the URL is reloaded. */
async function findRemoved(context: AuthContext, access: readonly AppAccess[], query: Parameters) {
  const id = query.get('removed')
  const patient = query.get('patient')
  if (id === undefined) return undefined
  const now = access.find(one => one.client.id === id)
  const isGone = !now || (patient !== undefined && now.patients !== 'every' && !hasRecord(now, patient))
  const client = isGone ? await findClient(context.store.db, context, id) : undefined
  return client && { client, patient }
}

/** The patients of all apps. */
async function findPeople(
  context: AuthContext,
  { user }: Login,
  access: readonly AppAccess[],
  more: readonly (string | undefined)[] = [],
): Promise<KnownPatientNames> {
  const listed = access.flatMap(({ patients }) =>
    patients === 'every' ? [] : patients.slice(0, LIMITS.patientsListed),
  )
  const ids = new Set([...more.filter(id => id !== undefined), ...listed])
  const reader = await createNameReader(context, user, { purpose: 'apps-with-access' })
  const asked = [...ids].slice(0, LIMITS.patientsNamed)
  const people = await lookUpByIds(reader, asked)
  return new Map(isFailure(people) ? [] : asked.map(id => [id, people.find(person => person.id === id)]))
}
