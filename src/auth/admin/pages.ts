import type { FastifyInstance } from 'fastify'
import { html } from '../../web/ui/index.ts'
import { paths } from '../base/paths.ts'
import type { AuthContext } from '../oauth/context.ts'
import { signInAgain } from '../pages/parts/sign-in-again.ts'
import { GRANT } from './access/access-list.ts'
import { exportRoutes } from './access/exports.ts'
import { grantRoutes } from './access/grants-page.ts'
import { userRoutes } from './accounts/pages/routes.ts'
import { appRoutes } from './apps/page.ts'
import { overviewRoutes } from './overview/page.ts'
import { AGENTS } from './server/agents.ts'
import { SIGNING_KEYS } from './server/keys.ts'
import { keyRoutes } from './server/keys-page.ts'
import { policyRoutes } from './server/policy-page.ts'
import { providerRoutes } from './server/providers-page.ts'
import { systemRoutes } from './server/system-page.ts'
import { defineOperationRoutes } from './subject/operations.ts'
import { type AdminRoute, addAdminRoutes } from './subject/page/route.ts'
import { renderAdminPage } from './subject/page/shell.ts'
import { auditRoutes } from './trail/pages/routes.ts'

/** `/admin`: the administration area. */
export function addAdminPages(
  app: FastifyInstance,
  context: AuthContext,
  more: readonly AdminRoute[] = [],
): void {
  addAdminRoutes(app, context, [...adminRoutes, ...more])
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
      renderAdminPage(
        request,
        {
          section: 'overview',
          title: 'You are signed in',
          lead: 'Close this tab, and continue in the other one.',
        },
        html``,
      ),
  },
]

export const adminRoutes: readonly AdminRoute[] = [
  ...signInRoutes,
  ...overviewRoutes,
  ...systemRoutes,
  ...appRoutes,
  ...userRoutes,
  ...grantRoutes,
  ...defineOperationRoutes(GRANT),
  ...exportRoutes,
  ...keyRoutes,
  ...defineOperationRoutes(SIGNING_KEYS),
  ...defineOperationRoutes(AGENTS),
  ...providerRoutes,
  ...policyRoutes,
  ...auditRoutes,
]
