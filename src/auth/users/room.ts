import type { FastifyRequest } from 'fastify'
import { sha256 } from '../../store/index.ts'
import { findSite } from '../../web/http/index.ts'
import type { UsersContext } from './context.ts'
import { findLastUser } from './return-path.ts'

/**
 * Whose pending requests those of a browser without a login count among: those of the user who signed in there last, by a cookie
 * that only this server makes, or else those of its network. So the strangers of a network do not take the room of its users.
 */
export function findRoom(
  context: Pick<UsersContext, 'settings' | 'sealer'>,
  request: FastifyRequest,
): string {
  const userId = findLastUser(context, request)
  return sha256(userId === undefined ? findSite(request.ip) : `user ${userId}`)
}
