import type { Transaction } from 'kysely'
import type { AuditRecord } from '../../audit/index.ts'
import { type Schema, sha256 } from '../../store/index.ts'
import type { Client } from '../client/client.ts'
import type { AuthContext } from '../context.ts'
import { type AuditedGrant, findGrantForAudit } from '../grant/find-grant-for-audit.ts'
import { revokeGrant } from '../grant/grant.ts'
import { verifyOwnJwt } from '../keys/own-jwt.ts'
import type { PublicJwk } from '../keys/signing-key.ts'
import { revoke } from './revocation.ts'

/** The owner of the revoked token. */
type RevokedToken = AuditedGrant | Pick<AuditRecord, 'subject' | 'patient' | 'launch'>

export interface TokenToRevoke {
  readonly client: Client
  readonly token: string
  /** The keys of this server's access tokens. */
  readonly keys: readonly PublicJwk[]
}

/**
 * Revokes a token (RFC 7009) and returns its owner. A refresh token, even a rotated one, revokes its grant with all
 * tokens; an access token only itself. Does nothing with unknown, ended and other clients' tokens.
 */
export async function revokeToken(
  trx: Transaction<Schema>,
  { clock }: Pick<AuthContext, 'clock'>,
  { client, token, keys }: TokenToRevoke,
): Promise<RevokedToken | undefined> {
  const found = await trx
    .selectFrom('refresh_token')
    .innerJoin('grant', 'grant.id', 'refresh_token.grant_id')
    .select('grant_id')
    .where('token_hash', '=', sha256(token))
    .where('grant.client_id', '=', client.id)
    .executeTakeFirst()
  if (found)
    return (await revokeGrant(trx, found.grant_id, clock()))
      ? findGrantForAudit(trx, { code: undefined, refreshToken: token })
      : undefined
  const { client_id, jti, exp, sub, patient } = verifyOwnJwt(token, 'at+jwt', keys) ?? {}
  if (client_id !== client.id || typeof jti !== 'string') return undefined
  if (typeof exp !== 'number' || exp * 1000 <= clock()) return undefined
  if (!(await revoke(trx, jti, clock(), exp * 1000))) return undefined
  return { subject: readText(sub), patient: readText(patient), launch: jti.split('.')[0] }
}

function readText(claim: unknown): string | undefined {
  return typeof claim === 'string' ? claim : undefined
}
