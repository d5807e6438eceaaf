import type { FastifyReply } from 'fastify'
import type { AuthContext } from '../context.ts'
import { type AccessToken, readAccessToken } from './read-access-token.ts'

/** RFC 6750, 3.1. */
export type BearerError = 'no-token' | 'invalid-token' | 'insufficient-scope'

/** Verifies the access token of an Authorization header (RFC 6750, 2.1); never one in a query or a form. */
export async function authenticateBearer(
  context: AuthContext,
  authorization: string | undefined,
): Promise<AccessToken | BearerError> {
  if (authorization === undefined || !isBearer(authorization)) return 'no-token'
  const token = authorization.slice('bearer'.length).trim()
  return (await readAccessToken(context, token)) ?? 'invalid-token'
}

export function isBearer(authorization: string | undefined): boolean {
  return authorization !== undefined && /^bearer +\S/i.test(authorization)
}

/** `scope` is the scope that the request needs. */
export function sendBearerError(
  reply: FastifyReply,
  fault: BearerError,
  scope: string,
  forScope: 401 | 403 = 403,
): FastifyReply {
  reply.log.info(
    { check: fault, ...(fault === 'insufficient-scope' && { expected: scope }) },
    'Bearer token refused',
  )
  switch (fault) {
    case 'no-token':
      return sendError(reply, 401, '', 'invalid_request', 'The request carries no access token.')
    case 'invalid-token':
      return sendError(
        reply,
        401,
        ', error="invalid_token"',
        'invalid_token',
        'The access token is expired, revoked or from another issuer.',
      )
    case 'insufficient-scope':
      return sendError(
        reply,
        forScope,
        `, error="insufficient_scope", scope="${scope}"`,
        'insufficient_scope',
        `The access token lacks the scope ${scope}.`,
      )
  }
}

function sendError(
  reply: FastifyReply,
  status: 401 | 403,
  more: string,
  error: string,
  error_description: string,
): FastifyReply {
  return reply
    .code(status)
    .header('www-authenticate', `Bearer realm="sallyport"${more}`)
    .send({ error, error_description })
}
