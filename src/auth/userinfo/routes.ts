import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { readBearer, sendBearerFault } from '../access/bearer.ts'
import { findClient } from '../client/client.ts'
import { forbidCaching } from '../client/request.ts'
import { fhirUserOf } from '../clinician/clinician.ts'
import type { AuthContext } from '../context.ts'
import { type Grant, hasScope } from '../grant/grant.ts'
import { paths } from '../paths.ts'
import { answerPreflight, clientOrigins, limitToOriginsOf } from '../token/cors.ts'

/** `/oauth2/userinfo` (OIDC Core, 5.3): who the clinician of an access token with `openid` is. */
export function userinfoRoutes(app: FastifyInstance, context: AuthContext): void {
  const onRequest = [forbidCaching, clientOrigins(context.store)]
  const answer = async (request: FastifyRequest, reply: FastifyReply) => {
    const bearer = await readBearer(context, request.headers.authorization)
    if (typeof bearer === 'string') return sendBearerFault(reply, bearer, 'openid')
    const { grant, scope, clientId } = bearer
    const client = await findClient(context.store, clientId)
    if (client) limitToOriginsOf(client, request, reply)
    return grant && hasScope(scope, 'openid')
      ? reply.send(userinfo(context, grant, scope))
      : sendBearerFault(reply, 'insufficient-scope', 'openid')
  }
  app.options(paths.userinfo, { onRequest: clientOrigins(context.store) }, answerPreflight)
  app.get(paths.userinfo, { onRequest }, answer)
  app.post(paths.userinfo, { onRequest }, answer)
}

/** The same as in the id_token. */
function userinfo({ settings }: AuthContext, { clinician }: Grant, scope: string) {
  const fhirUser = hasScope(scope, 'fhirUser')
  return {
    sub: clinician.id,
    ...(fhirUser ? { fhirUser: fhirUserOf(clinician.fhirUserId, settings.fhirBaseUrl) } : {}),
    ...(fhirUser || hasScope(scope, 'profile') ? { name: clinician.displayName } : {}),
  }
}
