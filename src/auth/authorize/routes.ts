import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { errorPage } from '../../web/index.ts'
import type { AuthContext } from '../context.ts'
import { currentLogin } from '../login/current-login.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { Refusal } from '../refusal.ts'
import { findInteraction, type Interaction, storeInteraction } from './interaction.ts'
import { proceed } from './proceed.ts'
import { sendRefusal } from './respond.ts'
import { verifyRequest } from './verify.ts'

// A HEAD would use a launch up for a response that nobody reads.
const ACTS = { exposeHeadRoute: false } as const

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
    const { id } = await storeInteraction(context.store, verified)
    return reply.redirect(`${paths.resume}?interaction=${id}`, 303)
  })

  app.get(paths.resume, ACTS, async (request, reply) => {
    const interaction = await interactionOf(context, readParameters(request.query).get('interaction'))
    return interaction ? proceed(reply, context, interaction) : sendOver(request, reply, context)
  })
}

export async function interactionOf(
  { store, clock }: AuthContext,
  id: string | undefined,
): Promise<Interaction | undefined> {
  return id === undefined ? undefined : findInteraction(store, id, clock())
}

/** The request was answered before, or its 10 minutes are over. Where it came from is no longer known. */
export function sendOver(request: FastifyRequest, reply: FastifyReply, { clock }: AuthContext): FastifyReply {
  const page = errorPage({
    kind: 'refused',
    title: 'This sign-in is over',
    text: [
      'It was already finished, or it waited longer than 10 minutes. No record was opened.',
      'Launch the app again from the patient list.',
    ],
    code: 'invalid_request',
    reference: request.id,
    now: clock(),
    actions: [{ href: paths.portal, text: 'Go to patients' }],
  })
  return reply.sendPage(page, { status: 400 })
}
