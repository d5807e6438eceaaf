import type { FastifyInstance, FastifyRequest } from 'fastify'
import { parseScopes } from '../../smart/index.ts'
import { type BearerFault, isBearer, readBearer, sendBearerFault } from '../access/bearer.ts'
import { authenticateClient } from '../client/authenticate.ts'
import { forbidCaching, readForm, sendRefused } from '../client/request.ts'
import type { AuthContext } from '../context.ts'
import type { Parameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { Refusal } from '../refusal.ts'
import { introspect, type Sight } from './introspect.ts'

/** `POST /oauth2/introspect` (RFC 7662; SMART 2.2, token introspection). */
export function introspectRoutes(app: FastifyInstance, context: AuthContext): void {
  app.post(paths.introspect, { onRequest: forbidCaching }, async (request, reply) => {
    const form = readForm(request)
    if (form instanceof Refusal) return sendRefused(request, reply, form)
    const sight = await sightOf(context, request, form)
    if (sight instanceof Refusal) return sendRefused(request, reply, sight)
    if (typeof sight === 'string') return sendBearerFault(reply, sight, 'system/*.rs', 401)
    const token = form.get('token')
    if (token === undefined)
      return sendRefused(request, reply, new Refusal('invalid_request', 'The parameter token is missing.'))
    const onInactive = (check: string) => request.log.info({ check }, 'Introspected token is inactive')
    return reply.send(await introspect(context, sight, token, onInactive))
  })
}

/** A confidential client sees its own tokens, the bearer of a `system/` read scope the access tokens of any. */
async function sightOf(
  context: AuthContext,
  { headers }: FastifyRequest,
  form: Parameters,
): Promise<Sight | Refusal | BearerFault> {
  if (isBearer(headers.authorization)) {
    const bearer = await readBearer(context, headers.authorization)
    if (typeof bearer === 'string') return bearer
    return readsAsSystem(bearer.scope) ? { kind: 'any-access-token' } : 'insufficient-scope'
  }
  const client = await authenticateClient(context, headers.authorization, form)
  if (client instanceof Refusal) return client
  if (client.authMethod === 'none')
    return new Refusal('invalid_client', 'A public client cannot prove itself.')
  return { kind: 'own', clientId: client.id }
}

function readsAsSystem(scope: string): boolean {
  return parseScopes(scope).some(
    one => one.kind === 'resource' && one.context === 'system' && one.permissions.has('r'),
  )
}
