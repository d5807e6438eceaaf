import type { FastifyInstance } from 'fastify'
import type { AuthContext } from '../context.ts'
import { currentLogin } from '../login/current-login.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { Refusal } from '../refusal.ts'
import { ACTS } from './acts.ts'
import { interactionOf, storeInteraction } from './interaction.ts'
import { proceed } from './proceed.ts'
import { sendOver, sendRefusal } from './respond.ts'
import { verifyRequest } from './verify.ts'

/** `/oauth2/authorize` by query and by form (`authorize-post`), and where a request goes on after a page. */
export function authorizeRoutes(app: FastifyInstance, context: AuthContext): void {
  app.get(paths.authorize, ACTS, async (request, reply) => {
    const verified = await verifyRequest(context, readParameters(request.query))
    return verified instanceof Refusal
      ? sendRefusal(reply, context, verified)
      : proceed(reply, context, { request: verified })
  })

  // A browser that comes from another site leaves the login cookie out of a POST, but not out of the GET after it.
  app.post(paths.authorize, async (request, reply) => {
    const verified = await verifyRequest(context, readParameters(request.body))
    if (verified instanceof Refusal) return sendRefusal(reply, context, verified)
    if (await currentLogin(context, request)) return proceed(reply, context, { request: verified })
    const stored = await storeInteraction(context, verified, request.ip)
    return stored instanceof Refusal
      ? sendRefusal(reply, context, stored, { request: verified })
      : reply.redirect(`${paths.resume}?interaction=${stored.id}`, 303)
  })

  app.get(paths.resume, ACTS, async (request, reply) => {
    const interaction = await interactionOf(context, readParameters(request.query))
    return interaction ? proceed(reply, context, interaction) : sendOver(reply, context)
  })
}
