import { sha256 } from '../../store/index.ts'
import type { Client } from '../client/client.ts'
import type { AuthContext } from '../context.ts'
import { revokeGrant } from '../grant/grant.ts'
import { readOwnJwt } from '../keys/jwt.ts'
import { revoke } from './revocation.ts'

/**
 * Takes a token back (RFC 7009). A refresh token ends its grant with every token of it, and so does one that was
 * rotated; an access token ends alone. A token of another client, or of nobody, is left as it is.
 */
export async function revokeToken(context: AuthContext, client: Client, token: string): Promise<void> {
  const { store, clock } = context
  const found = await store.db
    .selectFrom('refresh_token')
    .innerJoin('grant', 'grant.id', 'refresh_token.grant_id')
    .select('grant_id')
    .where('token_hash', '=', sha256(token))
    .where('grant.client_id', '=', client.id)
    .executeTakeFirst()
  if (found) return revokeGrant(store.db, found.grant_id, clock())
  const claims = readOwnJwt(token, 'at+jwt', await context.keys.published())
  if (claims?.client_id !== client.id || typeof claims.jti !== 'string') return
  if (typeof claims.exp === 'number' && claims.exp * 1000 > clock())
    await revoke(store.db, claims.jti, clock(), claims.exp * 1000)
}
