import type { FastifyInstance } from 'fastify'
import { isFailure } from '../../../core/index.ts'
import { NO_HEAD_ROUTE, paths } from '../../base/paths.ts'
import { readParameters } from '../../base/request.ts'
import { proceed } from '../../oauth/authorize/proceed.ts'
import { expire, recordRefusal } from '../../oauth/authorize/refuse.ts'
import { findPendingAuthorization, storePendingAuthorization } from '../../oauth/authorize/request.ts'
import { verifyRequest } from '../../oauth/authorize/verify.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { findCurrentLogin } from '../../users/login.ts'
import { sendStep } from '../parts/authorize-step.ts'

/** `/oauth2/authorize` by query and by form (`authorize-post`), and `/oauth2/resume`, where a request continues after a page. */
export function addAuthorizeRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(paths.authorize, NO_HEAD_ROUTE, async (request, reply) => {
    const verified = await verifyRequest(context, readParameters(request.query))
    const step = isFailure(verified)
      ? await recordRefusal(request, context, verified)
      : await proceed(request, context, { request: verified.request, found: verified })
    return sendStep(reply, context, step)
  })

  // A browser omits the SameSite login cookie from a cross-site POST, but not from the GET that follows.
  app.post(paths.authorize, async (request, reply) => {
    const verified = await verifyRequest(context, readParameters(request.body))
    if (isFailure(verified)) return sendStep(reply, context, await recordRefusal(request, context, verified))
    if (await findCurrentLogin(context, request)) {
      const progress = { request: verified.request, found: verified }
      return sendStep(reply, context, await proceed(request, context, progress))
    }
    const stored = await storePendingAuthorization(context, verified.request, request)
    return isFailure(stored)
      ? sendStep(reply, context, await recordRefusal(request, context, stored, { request: verified.request }))
      : reply.redirect(`${paths.resume}?interaction=${stored.id}`, 303)
  })

  app.get(paths.resume, NO_HEAD_ROUTE, async (request, reply) => {
    const pending = await findPendingAuthorization(context, readParameters(request.query))
    const step = pending ? await proceed(request, context, pending) : await expire(request, context)
    return sendStep(reply, context, step)
  })
}
