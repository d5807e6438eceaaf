import type { FastifyInstance, FastifyRequest } from 'fastify'
import { parseScopes } from '../../smart/index.ts'
import { authenticateBearer, type BearerError, isBearer, sendBearerError } from '../access/bearer-token.ts'
import { authenticateClient } from '../client/authenticate.ts'
import { forbidCaching, readForm, sendOAuthError } from '../client/request.ts'
import type { AuthContext } from '../context.ts'
import type { Parameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { Refusal } from '../refusal.ts'
import { type IntrospectionScope, introspect } from './introspect.ts'

/** `POST /oauth2/introspect` (RFC 7662; SMART 2.2, token introspection). */
export function addIntrospectRoutes(app: FastifyInstance, context: AuthContext): void {
  app.post(paths.introspect, { onRequest: forbidCaching }, async (request, reply) => {
    const form = readForm(request)
    if (form instanceof Refusal) return sendOAuthError(request, reply, form)
    const visible = await authorizeIntrospection(context, request, form)
    if (visible instanceof Refusal) return sendOAuthError(request, reply, visible)
    if (typeof visible === 'string') return sendBearerError(reply, visible, 'system/*.rs', 401)
    const token = form.get('token')
    if (token === undefined)
      return sendOAuthError(request, reply, new Refusal('invalid_request', 'The parameter token is missing.'))
    const onInactive = (check: string) => request.log.info({ check }, 'Introspected token is inactive')
    return reply.send(await introspect(context, visible, token, onInactive))
  })
}

/** A confidential client may introspect its own tokens, a `system/` read scope the access tokens of every client. */
async function authorizeIntrospection(
  context: AuthContext,
  { headers }: FastifyRequest,
  form: Parameters,
): Promise<IntrospectionScope | Refusal | BearerError> {
  if (isBearer(headers.authorization)) {
    const bearer = await authenticateBearer(context, headers.authorization)
    if (typeof bearer === 'string') return bearer
    return readsAsSystem(bearer.scope) ? { kind: 'any-access-token' } : 'insufficient-scope'
  }
  const client = await authenticateClient(context, headers.authorization, form)
  if (client instanceof Refusal) return client
  if (client.authMethod === 'none')
    return new Refusal('invalid_client', 'A public client cannot be authenticated.')
  return { kind: 'own', clientId: client.id }
}

function readsAsSystem(scope: string): boolean {
  return parseScopes(scope).some(
    one => one.kind === 'resource' && one.context === 'system' && one.permissions.has('r'),
  )
}
