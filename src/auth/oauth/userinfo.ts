import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isFailure } from '../../core/index.ts'
import { paths } from '../base/paths.ts'
import { forbidCaching } from '../base/request.ts'
import { authenticateBearer, hasGrantEnded, sendBearerError } from './access-token.ts'
import { listResources } from './agents/resource.ts'
import { IDLE_HEADER, reportAppUse } from './app-use.ts'
import { findClient } from './clients/client.ts'
import { answerPreflight, createOriginHook, limitToClientOrigins } from './clients/origins.ts'
import type { AuthContext } from './context.ts'
import { buildUserClaims, hasScope } from './grants/grant.ts'

/** `/oauth2/userinfo` (OIDC Core, 5.3). */
export function addUserinfoRoutes(app: FastifyInstance, context: AuthContext): void {
  const onRequest = [forbidCaching, createOriginHook(context.store)]
  const sendUserinfo = async (request: FastifyRequest, reply: FastifyReply) => {
    const { authorization } = request.headers
    const bearer = await authenticateBearer(context, authorization, ...listResources(context.settings))
    if (isFailure(bearer)) {
      const isOver = bearer.reason === 'invalid-token' && (await hasGrantEnded(context, authorization))
      return sendBearerError(reply, isOver ? 'grant-ended' : bearer.reason, 'openid')
    }
    const { grant, scope, clientId } = bearer
    const use = await reportAppUse(context, bearer, request.headers[IDLE_HEADER])
    if (use?.isIdle) return sendBearerError(reply, 'login-required', 'openid')
    const client = await findClient(context.store.db, context, clientId)
    if (client) limitToClientOrigins(client, request, reply)
    return grant && hasScope(scope, 'openid')
      ? reply.send({
          sub: grant.user.id,
          ...buildUserClaims(context.settings, grant, scope),
          ...(use?.idleSeconds !== undefined && { idle_seconds: use.idleSeconds }),
        })
      : sendBearerError(reply, 'insufficient-scope', 'openid')
  }
  app.options(paths.userinfo, { onRequest: createOriginHook(context.store) }, answerPreflight)
  app.get(paths.userinfo, { onRequest }, sendUserinfo)
  app.post(paths.userinfo, { onRequest }, sendUserinfo)
}
