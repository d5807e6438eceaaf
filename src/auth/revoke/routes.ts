import type { FastifyInstance, FastifyRequest } from 'fastify'
import { auditEvent } from '../audit.ts'
import { consumeProof, type VerifiedClient, verifyClient } from '../client/authenticate.ts'
import { forbidCaching, readForm, sendOAuthError } from '../client/request.ts'
import type { AuthContext } from '../context.ts'
import { readParameters } from '../parameters.ts'
import { paths } from '../paths.ts'
import { Refusal } from '../refusal.ts'
import { answerPreflight, createOriginHook, limitToClientOrigins } from '../token/cors.ts'
import { listRevocations } from './revocation-list.ts'
import { revokeToken } from './revoke-token.ts'

/** `POST /oauth2/revoke` (RFC 7009), and `GET /oauth2/revocations`, the list for FHIR servers. */
export function addRevokeRoutes(app: FastifyInstance, context: AuthContext): void {
  const allowOrigin = createOriginHook(context.store)
  app.options(paths.revoke, { onRequest: allowOrigin }, answerPreflight)
  app.post(paths.revoke, { onRequest: [forbidCaching, allowOrigin] }, async (request, reply) => {
    const form = readForm(request)
    if (form instanceof Refusal) return sendOAuthError(request, reply, form)
    const verified = await verifyClient(context, request.headers.authorization, form)
    if (verified instanceof Refusal) return sendOAuthError(request, reply, verified)
    limitToClientOrigins(verified.client, request, reply)
    const refusal = await revokeRecorded(context, request, verified, form.get('token'))
    return refusal ? sendOAuthError(request, reply, refusal) : reply.code(200).send()
  })

  app.get(paths.revocations, async (request, reply) => {
    const since = readParameters(request.query).get('since') ?? ''
    const lifetimeMs = (context.settings.accessTokenTtlSeconds + 60) * 1000
    const feed = await listRevocations(context.store, {
      now: context.clock(),
      lifetimeMs,
      // An invalid `since` gets the whole list.
      ...(/^\d{1,15}$/.test(since) ? { since: Number(since) } : {}),
    })
    return reply.header('cache-control', 'no-store').send(feed)
  })
}

/** Uses up the client's assertion, revokes the token and writes the audit record in one transaction. */
async function revokeRecorded(
  context: AuthContext,
  request: FastifyRequest,
  verified: VerifiedClient,
  token: string | undefined,
): Promise<Refusal | undefined> {
  const keys = await context.keys.listPublicKeys()
  return context.store.db.transaction().execute(async trx => {
    const client = await consumeProof(trx, verified)
    if (client instanceof Refusal) return client
    if (token === undefined) return new Refusal('invalid_request', 'The parameter token is missing.')
    const ended = await revokeToken(trx, context, { client, token, keys })
    const event = { kind: 'revoke', status: 200, client: client.id } as const
    if (ended)
      await auditEvent(context, request, { ...ended, ...event, reason: 'The app revoked the token' }, trx)
    return undefined
  })
}
