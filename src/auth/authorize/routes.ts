import type { FastifyInstance } from 'fastify'
import type { AuthContext } from '../context.ts'
import { findCurrentLogin } from '../login/current-login.ts'
import { NO_HEAD_ROUTE } from '../no-head-route.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { Refusal } from '../refusal.ts'
import { findPendingAuthorization, storePendingAuthorization } from './pending-authorization.ts'
import { proceed } from './proceed.ts'
import { sendExpired, sendRefusal } from './respond.ts'
import { verifyRequest } from './verify.ts'

/** `/oauth2/authorize` by query and by form (`authorize-post`), and `/oauth2/resume`, where a request continues after a page. */
export function addAuthorizeRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(paths.authorize, NO_HEAD_ROUTE, async (request, reply) => {
    const verified = await verifyRequest(context, readParameters(request.query))
    return verified instanceof Refusal
      ? sendRefusal(reply, context, verified)
      : proceed(reply, context, { request: verified })
  })

  // A browser omits the SameSite login cookie from a cross-site POST, but not from the GET that follows.
  app.post(paths.authorize, async (request, reply) => {
    const verified = await verifyRequest(context, readParameters(request.body))
    if (verified instanceof Refusal) return sendRefusal(reply, context, verified)
    if (await findCurrentLogin(context, request)) return proceed(reply, context, { request: verified })
    const stored = await storePendingAuthorization(context, verified, request.ip)
    return stored instanceof Refusal
      ? sendRefusal(reply, context, stored, { request: verified })
      : reply.redirect(`${paths.resume}?interaction=${stored.id}`, 303)
  })

  app.get(paths.resume, NO_HEAD_ROUTE, async (request, reply) => {
    const pending = await findPendingAuthorization(context, readParameters(request.query))
    return pending ? proceed(reply, context, pending) : sendExpired(reply, context)
  })
}
