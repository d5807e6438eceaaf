import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isFailure } from '../../core/index.ts'
import { addEndpoints } from '../../endpoint/index.ts'
import { formatExact } from '../../fhir/index.ts'
import { nameReason, type Result, type SessionFailure, toResponse } from '../failure.ts'
import type { AppContext } from '../oauth/context.ts'
import type { SessionRequest } from '../records/resources.ts'
import { useSession } from '../sessions/idle.ts'
import { reportUse } from '../sessions/renew-session.ts'
import { auditSession, findSession, planSessionCookie } from '../sessions/session-store.ts'
import { queryApi, type SessionEndpoint } from './endpoint.ts'
import { defineSessionApi } from './openapi.ts'

export function addApiRoutes(app: FastifyInstance, context: AppContext): void {
  const cookie = planSessionCookie(context, '<sessionId>').name
  addEndpoints(app, defineSessionApi(context.settings.appUrl, cookie), endpoint => ({
    handler: (request, reply) => answer(context, endpoint, request, reply),
  }))
}

async function answer(
  context: AppContext,
  endpoint: SessionEndpoint,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const found = await openSessionRequest(context, request, endpoint)
  const result = isFailure(found) ? found : await queryApi(endpoint, found, request.query)
  const failed = isFailure(result) ? toResponse(result) : undefined
  // Requests to `/api/session` are not audited: a countdown polls it, and it returns nothing from the record.
  if (endpoint.extendsSession !== false) {
    const status = failed?.status ?? 200
    await auditSession(context, isFailure(found) ? undefined : found.session, {
      kind: 'api',
      status,
      allowed: status !== 401 && status !== 403 && status !== 409,
      method: request.method,
      request: `api${endpoint.path}`,
      reason: failed?.body.issue[0]?.details.text,
      ...(isFailure(result) && { details: nameReason(result) }),
      requestId: request.id,
      address: request.ip,
    })
  }
  if (isFailure(result)) return sendFailure(reply, result)
  return reply.type('application/json; charset=utf-8').send(formatExact(result))
}

function sendFailure(reply: FastifyReply, failure: SessionFailure): FastifyReply {
  const { status, body } = toResponse(failure)
  if (status >= 500) reply.log.warn({ failure: failure.reason }, 'Cannot answer')
  return reply.code(status).type('application/json; charset=utf-8').send(body)
}

/**
 * Finds the active session of a request. Unless the request only polls, it restarts the idle time of the session and of the
 * sign-in, which may have ended.
 */
export async function openSessionRequest(
  context: AppContext,
  request: FastifyRequest,
  { extendsSession = true, idleSeconds = 0 }: SessionUse = {},
): Promise<Result<SessionRequest>> {
  const found = await findSession(context, request)
  if (isFailure(found)) return found
  const session = extendsSession
    ? await reportUse(context, await useSession(context, found, context.clock() - idleSeconds * 1000))
    : found
  return isFailure(session) ? session : { context, session, requestId: request.id }
}

interface SessionUse {
  readonly extendsSession?: boolean
  /** How many seconds ago the user was active. */
  readonly idleSeconds?: number
}
