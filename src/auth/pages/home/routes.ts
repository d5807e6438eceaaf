import type { FastifyInstance } from 'fastify'
import { readZone } from '../../../web/ui/index.ts'
import { paths } from '../../base/paths.ts'
import { isPatientUser } from '../../base/user.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { findStartPage, requireLogin } from '../../users/login.ts'
import { readHome, renderHomePage } from './page.ts'

/** `/home`: the start page of patients and related persons (PATIENTS-8). Clinicians have the portal. */
export function addHomeRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(
    paths.home,
    requireLogin(context, async (request, reply, login) =>
      isPatientUser(login.user)
        ? reply.sendPage(
            renderHomePage(context, login, await readHome(context, login.user, readZone(request.cookies))),
          )
        : reply.redirect(findStartPage(login), 302),
    ),
  )
}
