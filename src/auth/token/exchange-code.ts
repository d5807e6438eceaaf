import type { Kysely, Selectable } from 'kysely'
import { isSameText, type Schema, sha256 } from '../../store/index.ts'
import type { Client } from '../client/client.ts'
import type { AuthContext } from '../context.ts'
import { findLiveGrant, revokeGrant } from '../grant/grant.ts'
import type { Parameters } from '../parameters.ts'
import { Refusal } from '../refusal.ts'
import { createRefreshToken, touchGrant } from './refresh-token.ts'
import type { TokenRequest } from './token-request.ts'
import type { Purchase } from './token-response.ts'

/**
 * `grant_type=authorization_code`. The code is used up by compare-and-set in one transaction with the refresh token
 * that it buys; a second use ends the whole grant (RFC 6749, 4.1.2).
 */
export async function exchangeCode(
  { clock }: Pick<AuthContext, 'clock'>,
  { trx, client, form }: TokenRequest,
): Promise<Purchase | Refusal> {
  const code = form.get('code')
  if (code === undefined) return missing('code')
  if (form.get('redirect_uri') === undefined) return missing('redirect_uri')
  if (client.pkceRequired && form.get('code_verifier') === undefined) return missing('code_verifier')
  const row = await findCode(trx, sha256(code), client)
  if (!row) return badCode('it is unknown, or of another client')
  const fault = faultOf(row, form, clock())
  if (fault !== undefined) return badCode(fault)
  if (row.used_at !== null || !(await consumeCode(trx, row.code_hash, clock()))) {
    const refusal = badCode('it was used before, so its grant ends')
    const hasEnded = await revokeGrant(trx, row.grant_id, clock())
    return hasEnded ? refusal.knowing({ endedGrant: 'A used code came again' }) : refusal
  }
  return buy(trx, row, clock())
}

type CodeRow = Selectable<Schema['authorization_code']>

function findCode(trx: Kysely<Schema>, codeHash: string, client: Client): Promise<CodeRow | undefined> {
  return trx
    .selectFrom('authorization_code')
    .innerJoin('grant', 'grant.id', 'authorization_code.grant_id')
    .selectAll('authorization_code')
    .where('code_hash', '=', codeHash)
    .where('grant.client_id', '=', client.id)
    .executeTakeFirst()
}

function faultOf(row: CodeRow, form: Parameters, now: number): string | undefined {
  if (row.redirect_uri !== form.get('redirect_uri')) return 'the redirect_uri is not that of the request'
  if (!isVerifierOf(row.code_challenge, form.get('code_verifier'))) return 'the code_verifier is wrong'
  // A code that was used is looked at as used however late it comes, so that its replay still ends the grant.
  if (row.used_at === null && row.expires_at <= now) return 'it has expired'
  return undefined
}

function isVerifierOf(challenge: string, verifier: string | undefined): boolean {
  // A verifier without a challenge is refused too: somebody may have taken the challenge away (RFC 9700, 4.8.2).
  if (challenge === '' || verifier === undefined) return challenge === '' && verifier === undefined
  // RFC 7636, 4.1.
  return /^[\w.~-]{43,128}$/.test(verifier) && isSameText(sha256(verifier), challenge)
}

async function consumeCode(trx: Kysely<Schema>, codeHash: string, now: number): Promise<boolean> {
  const result = await trx
    .updateTable('authorization_code')
    .set({ used_at: now })
    .where('code_hash', '=', codeHash)
    .where('used_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

async function buy(trx: Kysely<Schema>, row: CodeRow, now: number): Promise<Purchase | Refusal> {
  const grant = await findLiveGrant(trx, row.grant_id, now)
  if (!grant) return badCode('the grant or the login has ended')
  await touchGrant(trx, grant.id, now)
  const refreshToken = await createRefreshToken(trx, grant, now)
  return { grant, scope: grant.scope, refreshToken, nonce: row.nonce ?? undefined }
}

function missing(name: string): Refusal {
  return new Refusal('invalid_request', `The parameter ${name} is missing.`)
}

function badCode(detail: string): Refusal {
  return new Refusal('invalid_grant', 'The code is not valid for this request.', { detail })
}
