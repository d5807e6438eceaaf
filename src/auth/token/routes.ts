import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { auditTokens, type Sold } from '../audit.ts'
import { authenticateClient } from '../client/authenticate.ts'
import type { Client } from '../client/client.ts'
import { forbidCaching, readForm, sendRefused } from '../client/request.ts'
import type { AuthContext } from '../context.ts'
import type { Parameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { Refusal } from '../refusal.ts'
import { clientCredentials } from './client-credentials.ts'
import { answerPreflight, clientOrigins, limitToOriginsOf } from './cors.ts'
import { exchangeCode } from './exchange-code.ts'
import { refresh } from './refresh.ts'
import { type Purchase, tokenResponse } from './token-response.ts'

type Ask<Answer> = (context: AuthContext, client: Client, form: Parameters) => Promise<Answer | Refusal>

const GRANT_TYPES: Readonly<Record<string, Ask<Sold>>> = {
  authorization_code: buying(exchangeCode),
  refresh_token: buying(refresh),
  client_credentials: async (context, client, form) => {
    const response = await clientCredentials(context, client, form)
    return response instanceof Refusal ? response : { response }
  },
}

function buying(buy: Ask<Purchase>): Ask<Sold> {
  return async (context, client, form) => {
    const purchase = await buy(context, client, form)
    if (purchase instanceof Refusal) return purchase
    return { response: await tokenResponse(context, purchase), grant: purchase.grant }
  }
}

/** `POST /oauth2/token` (RFC 6749, 3.2). */
export function tokenRoutes(app: FastifyInstance, context: AuthContext): void {
  const allowOrigin = clientOrigins(context.store)
  app.options(paths.token, { onRequest: allowOrigin }, answerPreflight)
  app.post(paths.token, { onRequest: [forbidCaching, allowOrigin] }, async (request, reply) => {
    const sold = await answer(context, request, reply)
    await auditTokens(context, request, sold)
    return sold instanceof Refusal ? sendRefused(request, reply, sold) : reply.send(sold.response)
  })
}

async function answer(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Sold | Refusal> {
  const form = readForm(request)
  if (form instanceof Refusal) return form
  const client = await authenticateClient(context, request.headers.authorization, form)
  if (client instanceof Refusal) return client
  limitToOriginsOf(client, request, reply)
  const sold = await answerClient(context, client, form)
  return sold instanceof Refusal ? sold.knowing({ clientId: client.id }) : sold
}

const answerClient: Ask<Sold> = async (context, client, form) => {
  const name = form.get('grant_type')
  if (name === undefined) return new Refusal('invalid_request', 'The parameter grant_type is missing.')
  const grantType = Object.hasOwn(GRANT_TYPES, name) ? GRANT_TYPES[name] : undefined
  return grantType
    ? grantType(context, client, form)
    : new Refusal('unsupported_grant_type', 'The grant_type is not supported.')
}
