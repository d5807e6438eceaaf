import type { FastifyInstance } from 'fastify'
import { html } from '../../../web/index.ts'
import { paths } from '../../base/paths.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { appRoutes } from './apps.ts'
import { auditRoutes } from './audit.ts'
import { grantRoutes } from './grants.ts'
import { keyRoutes } from './keys.ts'
import { policyRoutes } from './policy.ts'
import { providerRoutes } from './providers.ts'
import { type AdminRoute, addAdminRoutes, signInAgain } from './route.ts'
import { renderAdminPage } from './shell.ts'
import { systemRoutes } from './system.ts'
import { userRoutes } from './users.ts'

/** `/admin`: the administration area. */
export function addAdminPages(app: FastifyInstance, context: AuthContext): void {
  addAdminRoutes(app, context, adminRoutes)
}

/** The sign-in in another tab, while a form waits. */
const signInRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/sign-in',
    handle: async ({ context, reply, login }) =>
      signInAgain(context, reply, login, `${paths.admin}/signed-in`),
  },
  {
    method: 'GET',
    path: '/signed-in',
    handle: async request =>
      request.reply.sendPage(
        renderAdminPage(
          request,
          {
            section: 'system',
            title: 'You are signed in',
            lead: 'Close this tab, and continue in the other one.',
          },
          html``,
        ),
      ),
  },
]

export const adminRoutes: readonly AdminRoute[] = [
  ...signInRoutes,
  ...systemRoutes,
  ...appRoutes,
  ...userRoutes,
  ...grantRoutes,
  ...keyRoutes,
  ...providerRoutes,
  ...policyRoutes,
  ...auditRoutes,
]
