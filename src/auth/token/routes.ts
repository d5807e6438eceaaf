import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { auditTokens, type Sold } from '../audit.ts'
import { type ProvenClient, proveClient, useProof } from '../client/authenticate.ts'
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
import type { TokenRequest } from './token-request.ts'
import { type Purchase, tokenResponse } from './token-response.ts'

type Ask<Answer> = (context: AuthContext, request: TokenRequest) => Promise<Answer | Refusal>

const GRANT_TYPES: Readonly<Record<string, Ask<Sold>>> = {
  authorization_code: buying(exchangeCode),
  refresh_token: buying(refresh),
  client_credentials: async (context, request) => {
    const response = await clientCredentials(context, request)
    return response instanceof Refusal ? response : { response }
  },
}

function buying(buy: Ask<Purchase>): Ask<Sold> {
  return async (context, request) => {
    const purchase = await buy(context, request)
    if (purchase instanceof Refusal) return purchase
    return { response: tokenResponse(context, request.key, purchase), grant: purchase.grant }
  }
}

/** `POST /oauth2/token` (RFC 6749, 3.2). */
export function tokenRoutes(app: FastifyInstance, context: AuthContext): void {
  const allowOrigin = clientOrigins(context.store)
  app.options(paths.token, { onRequest: allowOrigin }, answerPreflight)
  app.post(paths.token, { onRequest: [forbidCaching, allowOrigin] }, async (request, reply) => {
    const sold = await answer(context, request, reply)
    return sold instanceof Refusal ? sendRefused(request, reply, sold) : reply.send(sold.response)
  })
}

/** The answer, once it is in the audit trail. */
async function answer(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Sold | Refusal> {
  const asked = await readRequest(context, request)
  if (asked instanceof Refusal) {
    await auditTokens(context, request, asked)
    return asked
  }
  const { form, proven } = asked
  limitToOriginsOf(proven.client, request, reply)
  const key = await context.keys.signing()
  return context.store.db.transaction().execute(async trx => {
    const client = await useProof(trx, proven)
    const sold = client instanceof Refusal ? client : await answerClient(context, { trx, key, client, form })
    const known =
      sold instanceof Refusal
        ? sold.knowing({ clientId: proven.client.id, isProven: isVouchedFor(proven.client) })
        : sold
    await auditTokens(context, request, known, trx)
    return known
  })
}

// A secret that a client was given without anybody's approval tells nothing about who it is.
function isVouchedFor({ authMethod, approved }: Client): boolean {
  return authMethod !== 'none' && approved
}

async function readRequest(
  context: AuthContext,
  request: FastifyRequest,
): Promise<{ readonly form: Parameters; readonly proven: ProvenClient } | Refusal> {
  const form = readForm(request)
  if (form instanceof Refusal) return form
  const proven = await proveClient(context, request.headers.authorization, form)
  return proven instanceof Refusal ? proven : { form, proven }
}

const answerClient: Ask<Sold> = async (context, request) => {
  const name = request.form.get('grant_type')
  if (name === undefined) return new Refusal('invalid_request', 'The parameter grant_type is missing.')
  const grantType = Object.hasOwn(GRANT_TYPES, name) ? GRANT_TYPES[name] : undefined
  return grantType
    ? grantType(context, request)
    : new Refusal('unsupported_grant_type', 'The grant_type is not supported.')
}
