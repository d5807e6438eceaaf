import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { auditTokens } from '../audit.ts'
import { authenticateClient } from '../client/authenticate.ts'
import type { Client } from '../client/client.ts'
import { forbidCaching, readForm, sendRefused } from '../client/request.ts'
import type { AuthContext } from '../context.ts'
import { type Parameters, readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { Refusal } from '../refusal.ts'
import { clientCredentials } from './client-credentials.ts'
import { answerPreflight, clientOrigins, limitToOriginsOf } from './cors.ts'
import { exchangeCode } from './exchange-code.ts'
import { refresh } from './refresh.ts'
import { type Purchase, type TokenResponse, tokenResponse } from './token-response.ts'

type Ask<Answer> = (context: AuthContext, client: Client, form: Parameters) => Promise<Answer | Refusal>

const GRANT_TYPES: Readonly<Record<string, Ask<TokenResponse>>> = {
  authorization_code: buying(exchangeCode),
  refresh_token: buying(refresh),
  client_credentials: clientCredentials,
}

function buying(buy: Ask<Purchase>): Ask<TokenResponse> {
  return async (context, client, form) => {
    const purchase = await buy(context, client, form)
    return purchase instanceof Refusal ? purchase : tokenResponse(context, purchase)
  }
}

/** `POST /oauth2/token` (RFC 6749, 3.2). */
export function tokenRoutes(app: FastifyInstance, context: AuthContext): void {
  const allowOrigin = clientOrigins(context.store)
  app.options(paths.token, { onRequest: allowOrigin }, answerPreflight)
  app.post(paths.token, { onRequest: [forbidCaching, allowOrigin] }, async (request, reply) => {
    const response = await answer(context, request, reply)
    await auditTokens(context, request, readParameters(request.body).get('grant_type'), response)
    return response instanceof Refusal ? sendRefused(request, reply, response) : reply.send(response)
  })
}

async function answer(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<TokenResponse | Refusal> {
  const form = readForm(request)
  if (form instanceof Refusal) return form
  const client = await authenticateClient(context, request.headers.authorization, form)
  if (client instanceof Refusal) return client
  limitToOriginsOf(client, request, reply)
  return answerClient(context, client, form)
}

const answerClient: Ask<TokenResponse> = async (context, client, form) => {
  const name = form.get('grant_type')
  if (name === undefined) return new Refusal('invalid_request', 'The parameter grant_type is missing.')
  const grantType = Object.hasOwn(GRANT_TYPES, name) ? GRANT_TYPES[name] : undefined
  return grantType
    ? grantType(context, client, form)
    : new Refusal('unsupported_grant_type', 'The grant_type is not supported.')
}
