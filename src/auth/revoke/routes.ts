import type { FastifyInstance, FastifyRequest } from 'fastify'
import { auditEvent } from '../audit.ts'
import { type ProvenClient, proveClient, useProof } from '../client/authenticate.ts'
import { forbidCaching, readForm, sendRefused } from '../client/request.ts'
import type { AuthContext } from '../context.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { Refusal } from '../refusal.ts'
import { answerPreflight, clientOrigins, limitToOriginsOf } from '../token/cors.ts'
import { revocationFeed } from './feed.ts'
import { revokeToken } from './revoke-token.ts'

/** `POST /oauth2/revoke` (RFC 7009), and `GET /oauth2/revocations`, by which FHIR servers know what was revoked. */
export function revokeRoutes(app: FastifyInstance, context: AuthContext): void {
  const allowOrigin = clientOrigins(context.store)
  app.options(paths.revoke, { onRequest: allowOrigin }, answerPreflight)
  app.post(paths.revoke, { onRequest: [forbidCaching, allowOrigin] }, async (request, reply) => {
    const form = readForm(request)
    if (form instanceof Refusal) return sendRefused(request, reply, form)
    const proven = await proveClient(context, request.headers.authorization, form)
    if (proven instanceof Refusal) return sendRefused(request, reply, proven)
    limitToOriginsOf(proven.client, request, reply)
    const refusal = await revokeRecorded(context, request, proven, form.get('token'))
    return refusal ? sendRefused(request, reply, refusal) : reply.code(200).send()
  })

  app.get(paths.revocations, async (request, reply) => {
    const since = readParameters(request.query).get('since') ?? ''
    const lifetimeMs = (context.settings.accessTokenTtlSeconds + 60) * 1000
    const feed = await revocationFeed(context.store, {
      now: context.clock(),
      lifetimeMs,
      // An invalid `since` gets the whole list: the column accepts no other number.
      ...(/^\d{1,15}$/.test(since) ? { since: Number(since) } : {}),
    })
    return reply.header('cache-control', 'no-store').send(feed)
  })
}

/** Uses up the client's proof, ends the token and records that, in one transaction. */
async function revokeRecorded(
  context: AuthContext,
  request: FastifyRequest,
  proven: ProvenClient,
  token: string | undefined,
): Promise<Refusal | undefined> {
  const keys = await context.keys.published()
  return context.store.db.transaction().execute(async trx => {
    const client = await useProof(trx, proven)
    if (client instanceof Refusal) return client
    if (token === undefined) return new Refusal('invalid_request', 'The parameter token is missing.')
    const ended = await revokeToken(trx, context, { client, token, keys })
    const event = { kind: 'revoke', status: 200, client: client.id } as const
    if (ended)
      await auditEvent(context, request, { ...ended, ...event, reason: 'The app revoked the token' }, trx)
    return undefined
  })
}
