import type { Transaction } from 'kysely'
import type { AuditRecord } from '../../audit/index.ts'
import { type Schema, sha256 } from '../../store/index.ts'
import type { Client } from '../client/client.ts'
import type { AuthContext } from '../context.ts'
import { revokeGrant } from '../grant/grant.ts'
import { type GrantBehind, grantBehind } from '../grant/grant-behind.ts'
import { verifyOwnJwt } from '../keys/own-jwt.ts'
import type { PublicJwk } from '../keys/signing-key.ts'
import { revoke } from './revocation.ts'

/** Whose the token was that ended. */
type Ended = GrantBehind | Pick<AuditRecord, 'subject' | 'patient' | 'launch'>

export interface TokenToRevoke {
  readonly client: Client
  readonly token: string
  /** The keys that may sign our access tokens. */
  readonly keys: readonly PublicJwk[]
}

/**
 * Takes a token back (RFC 7009) and tells whose it was. A refresh token ends its grant with every token of it, and so does
 * one that was rotated; an access token ends alone. A token of another client, of nobody, or that had ended is left as it is.
 */
export async function revokeToken(
  trx: Transaction<Schema>,
  { clock }: Pick<AuthContext, 'clock'>,
  { client, token, keys }: TokenToRevoke,
): Promise<Ended | undefined> {
  const found = await trx
    .selectFrom('refresh_token')
    .innerJoin('grant', 'grant.id', 'refresh_token.grant_id')
    .select('grant_id')
    .where('token_hash', '=', sha256(token))
    .where('grant.client_id', '=', client.id)
    .executeTakeFirst()
  if (found)
    return (await revokeGrant(trx, found.grant_id, clock()))
      ? grantBehind(trx, { code: undefined, refreshToken: token })
      : undefined
  const { client_id, jti, exp, sub, patient } = verifyOwnJwt(token, 'at+jwt', keys) ?? {}
  if (client_id !== client.id || typeof jti !== 'string') return undefined
  if (typeof exp !== 'number' || exp * 1000 <= clock()) return undefined
  if (!(await revoke(trx, jti, clock(), exp * 1000))) return undefined
  return { subject: textOf(sub), patient: textOf(patient), launch: jti.split('.')[0] }
}

function textOf(claim: unknown): string | undefined {
  return typeof claim === 'string' ? claim : undefined
}
