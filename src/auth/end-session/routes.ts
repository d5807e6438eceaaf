import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { auditEvent } from '../audit.ts'
import { sendRefusal } from '../authorize/respond.ts'
import type { AuthContext } from '../context.ts'
import { clearLoginCookie, lastLogin } from '../login/current-login.ts'
import { endLogin, type Login } from '../login/login.ts'
import { type Parameters, readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { Refusal } from '../refusal.ts'
import { type EndRequest, readEndRequest } from './end-request.ts'
import { endSessionPage } from './page.ts'

const ACTS = { exposeHeadRoute: false } as const

/**
 * `end_session_endpoint` (OIDC RP-Initiated Logout). With an id_token of the clinician who is logged in the login ends
 * at once; otherwise the clinician is asked, so that no page can sign anybody out.
 */
export function endSessionRoutes(app: FastifyInstance, context: AuthContext): void {
  const ask = async (request: FastifyRequest, reply: FastifyReply, parameters: Parameters) => {
    const ending = await readEndRequest(context, parameters)
    if (ending instanceof Refusal) return sendRefusal(reply, context, ending)
    const login = await lastLogin(context, request)
    if (!login || login.clinician.id === ending.subject) return end(context, request, reply, ending, login)
    const formTargets = ending.returnTo === undefined ? [] : [ending.returnTo]
    return reply.sendPage(endSessionPage(login, ending, fieldsOf(parameters)), { formTargets })
  }
  app.get(paths.endSession, ACTS, (request, reply) => ask(request, reply, readParameters(request.query)))

  // A form of another site comes without the login cookie; the GET after it has it, and then the clinician is asked.
  app.post(paths.endSession, async (request, reply) => {
    const parameters = readParameters(request.body)
    if (await lastLogin(context, request)) return ask(request, reply, parameters)
    const ending = await readEndRequest(context, parameters)
    if (ending instanceof Refusal) return sendRefusal(reply, context, ending)
    return reply.redirect(`${paths.endSession}?${new URLSearchParams(fieldsOf(parameters))}`, 303)
  })

  app.post(paths.endSessionConfirmed, async (request, reply) => {
    const ending = await readEndRequest(context, readParameters(request.body))
    if (ending instanceof Refusal) return sendRefusal(reply, context, ending)
    return end(context, request, reply, ending, await lastLogin(context, request))
  })
}

async function end(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { returnTo }: EndRequest,
  login: Login | undefined,
): Promise<FastifyReply> {
  if (login) {
    const event = { kind: 'logout', status: 302, clinician: login.clinician } as const
    await context.store.db.transaction().execute(async trx => {
      await endLogin(trx, login.idHash, context.clock())
      await auditEvent(context, request, event, trx)
    })
  }
  clearLoginCookie(context, reply)
  return reply.redirect(returnTo ?? `${paths.login}?signed-out=1`, 302)
}

/** What goes on to the next page: never the id_token, which must not be in an address of ours. */
function fieldsOf(parameters: Parameters): Record<string, string> {
  const names = ['client_id', 'post_logout_redirect_uri', 'state'] as const
  return Object.fromEntries(
    names.flatMap(name => {
      const value = parameters.get(name)
      return value === undefined ? [] : [[name, value]]
    }),
  )
}
