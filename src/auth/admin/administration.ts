import type { FastifyInstance } from 'fastify'
import { createOpenApi } from '../../endpoint/index.ts'
import { html } from '../../web/ui/index.ts'
import { paths } from '../base/paths.ts'
import type { AuthContext } from '../oauth/context.ts'
import { signInAgain } from '../pages/parts/sign-in-again.ts'
import { ACCESS_AREA } from './access/access-list.ts'
import { EXPORT_AREA } from './access/exports.ts'
import { ACCOUNT_AREA, CLINICIAN_AREA } from './accounts/api.ts'
import { USER_AREA } from './accounts/pages/routes.ts'
import { SIGN_IN_AREA } from './accounts/sign-ins.ts'
import { APP_AREA } from './apps/page.ts'
import type { AdminOperation } from './base/action.ts'
import { OVERVIEW_AREA } from './overview/page.ts'
import { AGENT_AREA } from './server/agents.ts'
import { KEY_AREA } from './server/keys.ts'
import { POLICY_AREA } from './server/policy-page.ts'
import { PROVIDER_AREA } from './server/providers.ts'
import { SETTINGS_AREA, SYSTEM_AREA } from './server/system-page.ts'
import { addAdminApi, describeAdminApi } from './subject/api.ts'
import type { Area } from './subject/area.ts'
import { type AdminRoute, addAdminRoutes } from './subject/page/route.ts'
import { renderAdminPage } from './subject/page/shell.ts'
import { TRAIL_AREA } from './trail/subject.ts'

/** Everything that is administered, in the order of the OpenAPI document. */
const AREAS: readonly Area[] = [
  OVERVIEW_AREA,
  APP_AREA,
  CLINICIAN_AREA,
  ACCOUNT_AREA,
  USER_AREA,
  KEY_AREA,
  AGENT_AREA,
  ACCESS_AREA,
  EXPORT_AREA,
  SIGN_IN_AREA,
  TRAIL_AREA,
  POLICY_AREA,
  SETTINGS_AREA,
  PROVIDER_AREA,
  SYSTEM_AREA,
]

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

export const adminRoutes = [...signInRoutes, ...AREAS.flatMap(({ routes = [] }) => routes)]
const endpoints = AREAS.flatMap(({ endpoints = [] }) => endpoints)

/** `/admin` and `/admin/api`. `more` is administered too. */
export function addAdministration(
  app: FastifyInstance,
  context: AuthContext,
  more: readonly Area[] = [],
): void {
  addAdminRoutes(app, context, [...adminRoutes, ...more.flatMap(({ routes = [] }) => routes)])
  addAdminApi(app, context, [...endpoints, ...more.flatMap(({ endpoints = [] }) => endpoints)])
}

export function createAdminApiDocument(issuerUrl: string) {
  return createOpenApi(describeAdminApi(issuerUrl, endpoints))
}

/** The lists and the rows that commands print, and the operations that are commands. */
export const LIST_COMMANDS = AREAS.flatMap(({ lists = [] }) => lists)
export const SHOW_COMMANDS = AREAS.flatMap(({ shows = [] }) => shows)
export const OPERATION_COMMANDS = AREAS.flatMap(({ commands = [] }) => commands)

/** Every operation of administrators. */
export const OPERATIONS: readonly AdminOperation[] = [
  ...new Map(
    AREAS.flatMap(({ endpoints = [], operations = [] }) => [
      ...endpoints.flatMap(({ operation }) => operation ?? []),
      ...operations,
    ]).map(operation => [operation.name, operation]),
  ).values(),
]
