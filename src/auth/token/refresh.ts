import type { Kysely, Selectable } from 'kysely'
import { parseScopes } from '../../smart/index.ts'
import { type Schema, type Sealer, sha256 } from '../../store/index.ts'
import type { Client } from '../client/client.ts'
import type { AuthContext } from '../context.ts'
import { findLiveGrant, type Grant, revokeGrant } from '../grant/grant.ts'
import { ScopeIndex } from '../grant/scope-index.ts'
import { checkAskedScope } from '../grant/scope-refusals.ts'
import { LIFETIME } from '../lifetimes.ts'
import { Refusal } from '../refusal.ts'
import { createRefreshToken, touchGrant } from './refresh-token.ts'
import type { TokenRequest } from './token-request.ts'
import type { Purchase } from './token-response.ts'

const sealedFor = (tokenHash: string) =>
  ({ table: 'refresh_token', column: 'successor_sealed', row: tokenHash }) as const

type TokenRow = Selectable<Schema['refresh_token']>

/**
 * `grant_type=refresh_token`. Each token is used once, by compare-and-set in one transaction with its successor. Using
 * it again ends the whole grant, unless it is the retry of a response that was lost: the same request, within the retry window,
 * while the successor is unused. That is answered with the same successor, so there is never a second branch.
 */
export async function refresh(
  context: Pick<AuthContext, 'clock' | 'sealer'>,
  { trx, client, form }: TokenRequest,
): Promise<Purchase | Refusal> {
  const token = form.get('refresh_token')
  if (token === undefined) return new Refusal('invalid_request', 'The parameter refresh_token is missing.')
  const now = context.clock()
  const row = await findToken(trx, sha256(token), client)
  const grant = row && row.expires_at > now ? await findLiveGrant(trx, row.grant_id, now) : undefined
  if (!row || !grant) return badToken('it is unknown, of another client, expired or revoked')
  const scope = scopeOf(grant, form.get('scope'))
  if (scope instanceof Refusal) return scope
  const request = { hash: sha256(JSON.stringify([client.id, form.get('scope') ?? null])), now }
  const refreshToken =
    row.used_at === null && (await consume(trx, row, request))
      ? await succeed(trx, row, grant, context, now)
      : await retry(trx, row, request, context.sealer)
  if (refreshToken === undefined) {
    const refusal = badToken('it was used before, so its grant ends')
    const hasEnded = await revokeGrant(trx, grant.id, now)
    return hasEnded ? refusal.knowing({ endedGrant: 'A used refresh token came again' }) : refusal
  }
  await touchGrant(trx, grant.id, now)
  return { grant, scope, refreshToken, nonce: undefined }
}

/** What a refresh is asked with, to tell a retry from a replay. */
interface Asking {
  readonly hash: string
  readonly now: number
}

function findToken(trx: Kysely<Schema>, tokenHash: string, client: Client): Promise<TokenRow | undefined> {
  return trx
    .selectFrom('refresh_token')
    .innerJoin('grant', 'grant.id', 'refresh_token.grant_id')
    .selectAll('refresh_token')
    .where('token_hash', '=', tokenHash)
    .where('grant.client_id', '=', client.id)
    .executeTakeFirst()
}

/** The same scopes or fewer, never more (RFC 6749, 6). The grant itself stays as it is for later refreshes. */
function scopeOf(grant: Grant, asked: string | undefined): string | Refusal {
  // A client may repeat what it was granted, however long that is.
  if (asked === undefined || asked === grant.scope) return grant.scope
  const refused = checkAskedScope(asked)
  if (refused) return refused
  const texts = asked.split(' ').filter(text => text !== '')
  const scopes = parseScopes(texts)
  const granted = new ScopeIndex(parseScopes(grant.scope))
  return texts.length > 0 && scopes.length === new Set(texts).size && scopes.every(one => granted.covers(one))
    ? scopes.map(one => one.text).join(' ')
    : new Refusal('invalid_scope', 'The scope is wider than what was granted.')
}

async function consume(trx: Kysely<Schema>, row: TokenRow, { hash, now }: Asking): Promise<boolean> {
  const result = await trx
    .updateTable('refresh_token')
    .set({ used_at: now, request_hash: hash })
    .where('token_hash', '=', row.token_hash)
    .where('used_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

async function succeed(
  trx: Kysely<Schema>,
  row: TokenRow,
  grant: Grant,
  { sealer }: Pick<AuthContext, 'sealer'>,
  now: number,
): Promise<string | undefined> {
  const successor = await createRefreshToken(trx, grant, now)
  if (successor === undefined) return undefined
  await trx
    .updateTable('refresh_token')
    .set({
      successor_hash: sha256(successor),
      successor_sealed: sealer.seal(successor, sealedFor(row.token_hash)),
    })
    .where('token_hash', '=', row.token_hash)
    .execute()
  return successor
}

/**
 * The successor again, if this is a retry. Reads the row again: another request may have just used the token. A
 * successor that was sealed for another token, or with another secret, is none.
 */
async function retry(
  trx: Kysely<Schema>,
  { token_hash }: TokenRow,
  { hash, now }: Asking,
  sealer: Sealer,
): Promise<string | undefined> {
  const used = await trx
    .selectFrom('refresh_token as used')
    .innerJoin('refresh_token as successor', 'successor.token_hash', 'used.successor_hash')
    .select('used.successor_sealed')
    .where('used.token_hash', '=', token_hash)
    .where('used.used_at', '>=', now - LIFETIME.refreshRetry)
    .where('used.request_hash', '=', hash)
    .where('successor.used_at', 'is', null)
    .executeTakeFirst()
  return used?.successor_sealed == null
    ? undefined
    : sealer.tryOpen(used.successor_sealed, sealedFor(token_hash))
}

function badToken(detail: string): Refusal {
  return new Refusal('invalid_grant', 'The refresh token is not valid.', { detail })
}
