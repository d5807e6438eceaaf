import type { FastifyInstance } from 'fastify'
import { auditEvent } from '../audit.ts'
import { authenticateClient } from '../client/authenticate.ts'
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
    const client = await authenticateClient(context, request.headers.authorization, form)
    if (client instanceof Refusal) return sendRefused(request, reply, client)
    limitToOriginsOf(client, request, reply)
    const token = form.get('token')
    if (token === undefined)
      return sendRefused(request, reply, new Refusal('invalid_request', 'The parameter token is missing.'))
    const ended = await revokeToken(context, client, token)
    if (ended)
      await auditEvent(context, request, {
        ...{ ...ended, kind: 'revoke', status: 200, client: client.id },
        reason: 'The app gave the token back',
      })
    return reply.code(200).send()
  })

  app.get(paths.revocations, async (request, reply) => {
    const since = Number(readParameters(request.query).get('since') ?? 0)
    const lifetimeMs = (context.settings.accessTokenTtlSeconds + 60) * 1000
    const feed = await revocationFeed(context.store, {
      now: context.clock(),
      lifetimeMs,
      ...(Number.isFinite(since) ? { since } : {}),
    })
    return reply.header('cache-control', 'no-store').send(feed)
  })
}
