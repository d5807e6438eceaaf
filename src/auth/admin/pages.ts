import type { FastifyInstance } from 'fastify'
import { isFailure } from '../../core/index.ts'
import { formatName } from '../../web/person/index.ts'
import { html, renderHidden } from '../../web/ui/index.ts'
import { paths } from '../base/paths.ts'
import type { AuthContext } from '../oauth/context.ts'
import { signInAgain } from '../pages/parts/sign-in-again.ts'
import { grantRoutes } from './access/grants-page.ts'
import { policyRoutes } from './access/policy-page.ts'
import { userRoutes } from './accounts/pages/routes.ts'
import { ENDPOINTS } from './api.ts'
import { appRoutes } from './apps/page.ts'
import type { AdminFailure } from './base/action.ts'
import type { Asked, Endpoint } from './base/endpoint.ts'
import { overviewRoutes } from './overview/page.ts'
import { findPatientNames } from './page/find-patients.ts'
import { type AdminRequest, type AdminRoute, addAdminRoutes } from './page/route.ts'
import { defineAction, renderAdminPage } from './page/shell.ts'
import { keyRoutes } from './server/keys-page.ts'
import { providerRoutes } from './server/providers-page.ts'
import { systemRoutes } from './server/system-page.ts'
import { auditRoutes } from './trail/pages/routes.ts'

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

/** The pages on which an administrator confirms the operations of endpoints. */
function defineConfirmation({ operation, page, handle }: Endpoint): readonly AdminRoute[] {
  if (!operation || !page) return []
  return defineAction({
    path: page.path,
    operation,
    async ask(request) {
      const asked = await page.ask(toAsked(request))
      if (isFailure(asked)) return asked
      const list = request.form.get('list')
      const back = list === undefined ? (asked.back ?? page.back) : formatList(list)
      return { ...page, ...asked, back, fields: html`${renderHidden({ list })}` }
    },
    async perform(request) {
      const { admin, context, params } = request
      const app = request.request.server
      const asked = await page.ask(toAsked(request))
      if (isFailure(asked)) return asked
      const result = await handle({ admin, context, app, params, query: {}, body: {} })
      if (isFailure<unknown, AdminFailure>(result)) return result
      const list = request.form.get('list')
      return list === undefined ? `${asked.back ?? page.back}?done=${page.done}` : formatList(list, page.done)
    },
  })
}

/** The list of access, with the filters with which the administrator left it. */
function formatList(filters: string, done?: string): string {
  const query = new URLSearchParams(filters)
  query.delete('done')
  if (done !== undefined) query.set('done', done)
  return `/access?${query}`
}

function toAsked(request: AdminRequest): Asked {
  return {
    admin: request.admin,
    params: request.params,
    async findPatient(id) {
      const person = (await findPatientNames(request, 'administration-names', [id])).get(id)
      return person && formatName(person.name)
    },
  }
}

export const adminRoutes: readonly AdminRoute[] = [
  ...signInRoutes,
  ...overviewRoutes,
  ...systemRoutes,
  ...appRoutes,
  ...userRoutes,
  ...grantRoutes,
  ...keyRoutes,
  ...providerRoutes,
  ...policyRoutes,
  ...auditRoutes,
  ...ENDPOINTS.flatMap(defineConfirmation),
]
