import type { FastifyInstance } from 'fastify'
import type { Person } from '../../../web/index.ts'
import { auditEvent } from '../../base/audit.ts'
import { createNameReader } from '../../base/fhir-reader.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { readParameters } from '../../base/request.ts'
import { findClient } from '../../oauth/clients/client.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { findByIds } from '../../oauth/launch/patients.ts'
import type { Login } from '../../users/find-login.ts'
import { requireLogin } from '../../users/login.ts'
import { listLogos } from '../portal/apps.ts'
import { type AppAccess, findAccess, removeAccess, renderManagePage, renderRemovePage } from './page.ts'

/** `/manage` (SMART `management_endpoint`): a user sees the apps with access and can remove it. */
export function addManageRoutes(app: FastifyInstance, context: AuthContext): void {
  const findLoginAccess = ({ user }: Login) => findAccess(context, user.id)

  app.get(
    paths.manage,
    requireLogin(context, async (request, reply, login) => {
      const access = await findLoginAccess(login)
      const name = readParameters(request.query).get('removed')
      // Only if it is true: the app may have access again when the URL is reloaded.
      const isGone = name !== undefined && !access.some(({ client }) => client.id === name)
      const removed = isGone ? await findClient(context.store.db, context, name) : undefined
      const names = await findPeople(context, login, access)
      return reply.sendPage(renderManagePage(context, login, { access, names, removed }))
    }),
  )

  app.get(
    paths.manageRemove,
    requireLogin(context, async (request, reply, login) => {
      const wanted = readParameters(request.query).get('client')
      const access = (await findLoginAccess(login)).find(({ client }) => client.id === wanted)
      if (!access) return reply.redirect(paths.manage, 302)
      const names = await findPeople(context, login, [access])
      const page = renderRemovePage(context, login, access, names)
      return reply.sendPage(page, { images: listLogos(access.client) })
    }),
  )

  app.post(
    paths.manageRemove,
    requireLogin(context, async (request, reply, login) => {
      const clientId = readParameters(request.body).get('client') ?? ''
      const { user } = login
      const had = await context.store.db.transaction().execute(async trx => {
        const removed = await removeAccess(trx, { userId: user.id, clientId, now: context.clock() })
        const event = { kind: 'revoke', status: 303, client: clientId, user } as const
        if (removed) await auditEvent(context, request, event, trx)
        return removed
      })
      return reply.redirect(
        had ? `${paths.manage}?removed=${encodeURIComponent(clientId)}` : paths.manage,
        303,
      )
    }),
  )
}

/** The patients of all apps, as far as the FHIR server returns them. */
async function findPeople(
  context: AuthContext,
  { user }: Login,
  access: readonly AppAccess[],
): Promise<ReadonlyMap<string, Person>> {
  const ids = new Set(
    access.flatMap(({ patients }) => (patients === 'every' ? [] : patients.slice(0, LIMITS.patientsListed))),
  )
  const reader = await createNameReader(context, user)
  const people = await findByIds(reader, [...ids].slice(0, LIMITS.patientsNamed))
  return new Map(people.map(person => [person.id, person]))
}
