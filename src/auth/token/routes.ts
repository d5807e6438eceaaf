import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { authenticateClient } from '../client/authenticate.ts'
import type { Client } from '../client/client.ts'
import type { AuthContext } from '../context.ts'
import { type Parameters, readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { Refusal, statusOf } from '../refusal.ts'
import { answerPreflight, clientOrigins, limitToOriginsOf } from './cors.ts'
import { exchangeCode } from './exchange-code.ts'
import { refresh } from './refresh.ts'
import { type Purchase, type TokenResponse, tokenResponse } from './token-response.ts'

type GrantType = (context: AuthContext, client: Client, form: Parameters) => Promise<Purchase | Refusal>

const GRANT_TYPES: Readonly<Record<string, GrantType>> = {
  authorization_code: exchangeCode,
  refresh_token: refresh,
}

/** `POST /oauth2/token` (RFC 6749, 3.2). */
export function tokenRoutes(app: FastifyInstance, context: AuthContext): void {
  const allowOrigin = clientOrigins(context.store)
  app.options(paths.token, { onRequest: allowOrigin }, answerPreflight)
  app.post(paths.token, { onRequest: [forbidCaching, allowOrigin] }, async (request, reply) => {
    const response = await answer(context, request, reply)
    return response instanceof Refusal ? sendRefusal(request, reply, response) : reply.send(response)
  })
}

// RFC 6749, 5.1: errors included.
async function forbidCaching(_request: FastifyRequest, reply: FastifyReply): Promise<void> {
  reply.headers({ 'cache-control': 'no-store', pragma: 'no-cache' })
}

async function answer(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<TokenResponse | Refusal> {
  const form = readForm(request)
  if (form instanceof Refusal) return form
  const client = await authenticateClient(context.store, request.headers.authorization, form)
  if (client instanceof Refusal) return client
  limitToOriginsOf(client, request, reply)
  const purchase = await buyWith(context, client, form)
  return purchase instanceof Refusal ? purchase : tokenResponse(context, purchase)
}

function readForm({ headers, body }: FastifyRequest): Parameters | Refusal {
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(headers['content-type'] ?? ''))
    return new Refusal('invalid_request', 'The body must be application/x-www-form-urlencoded.')
  const form = readParameters(body)
  return form.unreadable.size === 0
    ? form
    : new Refusal('invalid_request', 'A parameter is repeated or unreadable.')
}

async function buyWith(context: AuthContext, client: Client, form: Parameters): Promise<Purchase | Refusal> {
  const name = form.get('grant_type')
  if (name === undefined) return new Refusal('invalid_request', 'The parameter grant_type is missing.')
  const grantType = Object.hasOwn(GRANT_TYPES, name) ? GRANT_TYPES[name] : undefined
  return grantType
    ? grantType(context, client, form)
    : new Refusal('unsupported_grant_type', 'The grant_type is not supported.')
}

function sendRefusal(request: FastifyRequest, reply: FastifyReply, refusal: Refusal): FastifyReply {
  request.log.info({ error: refusal.code, detail: refusal.detail }, 'Token refused')
  const status = statusOf(refusal.code)
  if (status === 401) reply.header('www-authenticate', 'Basic realm="sallyport", charset="UTF-8"')
  return reply.code(status).send({ error: refusal.code, error_description: refusal.description })
}
