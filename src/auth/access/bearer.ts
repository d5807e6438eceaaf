import type { FastifyReply } from 'fastify'
import type { AuthContext } from '../context.ts'
import { type AccessToken, readAccessToken } from './read-access-token.ts'

/** Why a bearer of a token is turned away (RFC 6750, 3.1). */
export type BearerFault = 'no-token' | 'invalid-token' | 'insufficient-scope'

/** The access token of an Authorization header (RFC 6750, 2.1), never of a query or a form. */
export async function readBearer(
  context: AuthContext,
  authorization: string | undefined,
): Promise<AccessToken | BearerFault> {
  if (authorization === undefined || !isBearer(authorization)) return 'no-token'
  const token = authorization.slice('bearer'.length).trim()
  return (await readAccessToken(context, token)) ?? 'invalid-token'
}

export function isBearer(authorization: string | undefined): boolean {
  return authorization !== undefined && /^bearer +\S/i.test(authorization)
}

/** The response to a bearer who is turned away. `scope` is what would have been enough. */
export function sendBearerFault(
  reply: FastifyReply,
  fault: BearerFault,
  scope: string,
  forScope: 401 | 403 = 403,
): FastifyReply {
  reply.log.info(
    { check: fault, ...(fault === 'insufficient-scope' && { expected: scope }) },
    'Bearer token refused',
  )
  switch (fault) {
    case 'no-token':
      return refuse(reply, 401, '', 'invalid_request', 'The request carries no access token.')
    case 'invalid-token':
      return refuse(
        reply,
        401,
        ', error="invalid_token"',
        'invalid_token',
        'The access token is expired, revoked or not ours.',
      )
    case 'insufficient-scope':
      return refuse(
        reply,
        forScope,
        `, error="insufficient_scope", scope="${scope}"`,
        'insufficient_scope',
        `The access token lacks the scope ${scope}.`,
      )
  }
}

function refuse(
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
