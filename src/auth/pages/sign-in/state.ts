import type { FastifyInstance, FastifyRequest } from 'fastify'
import { parseIdleSeconds } from '../../../web/http/index.ts'
import { paths } from '../../base/paths.ts'
import { forbidCaching, readParameters } from '../../base/request.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { describeLoginEnd, recordLoginUse } from '../../users/idle.ts'
import { findCurrentLogin } from '../../users/login.ts'

/**
 * `/login/state`, for the script of the pages of a user (`assets/sign-out.js`). GET says when the sign-in ends, and is no use
 * of it. POST reports that the user was active `idleSeconds` ago: typed, or moved the pointer. A sign-in that has ended stays
 * so, and neither is recorded: nothing of a record is read.
 */
export function addLoginStateRoutes(app: FastifyInstance, context: AuthContext): void {
  const { settings, store, clock } = context

  async function describeState(request: FastifyRequest) {
    const login = await findCurrentLogin(context, request)
    return login ? { signedIn: true, ...describeLoginEnd(login, settings, clock()) } : { signedIn: false }
  }

  app.get(paths.loginState, { onRequest: forbidCaching }, async (request, reply) =>
    reply.send(await describeState(request)),
  )

  app.post(paths.loginState, { onRequest: forbidCaching }, async (request, reply) => {
    const idleSeconds = parseIdleSeconds(readParameters(request.body).get('idleSeconds'))
    if (idleSeconds === undefined)
      return reply.sendProblem({ kind: 'malformed', text: 'idleSeconds must be a number.' })
    const login = await findCurrentLogin(context, request)
    if (login) await recordLoginUse(store, settings, login, clock() - idleSeconds * 1000)
    return reply.send(await describeState(request))
  })
}
