import type { Kysely, Selectable } from 'kysely'
import { isFailure } from '../../../core/index.ts'
import { parseScopes } from '../../../smart/index.ts'
import { createRandomToken, prepareQuery, type Schema, type Sealer, sha256 } from '../../../store/index.ts'
import { LIFETIME } from '../../base/limits.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import { checkTokenResource } from '../agents/resource.ts'
import type { AuthContext } from '../context.ts'
import { findLiveGrant, revokeGrant, type UserGrant } from '../grants/grant.ts'
import { checkRequestedScope, compareScope } from '../grants/grant-scope.ts'
import { ScopeIndex } from '../grants/narrow.ts'
import { readExtension } from '../hooks.ts'
import type { TokenGrant, TokenRequest } from './token-response.ts'
import { createRefreshToken, touchGrant } from './token-response.ts'

const toSealedCell = (tokenHash: string) =>
  ({ table: 'refresh_token', column: 'successor_sealed', row: tokenHash }) as const

type TokenRow = Selectable<Schema['refresh_token']>

/**
 * `grant_type=refresh_token`. One transaction consumes the token by compare-and-set and creates its successor. A second use
 * revokes the grant, unless it is a retry after a lost response: the same request, within the retry window, while the
 * successor is unused. A retry gets the same successor, so a grant never has two valid refresh tokens.
 */
export async function refreshTokens(
  context: Pick<AuthContext, 'clock' | 'sealer' | 'rules' | 'hooks' | 'settings'>,
  { trx, client, form }: TokenRequest,
): Promise<TokenGrant | AuthRefusal> {
  const token = form.get('refresh_token')
  if (token === undefined) return refuse('parameter-missing', { parameter: 'refresh_token' })
  const now = context.clock()
  const [row] = (await selectToken(trx, { tokenHash: sha256(token), clientId: client.id })).rows
  const grant = row && row.expires_at > now ? await findLiveGrant(trx, context, row.grant_id) : undefined
  if (!row || !grant) return refuse('refresh-token-unknown')
  const refused =
    readExtension(context, grant).refuse?.('refresh') ??
    checkTokenResource(form, grant.resource ?? context.settings.fhirBaseUrl)
  if (refused) return refused
  const scope = narrowScope(grant, form.get('scope'))
  if (isFailure(scope)) return scope
  const request = { hash: sha256(JSON.stringify([client.id, form.get('scope') ?? null])), now }
  const refreshToken =
    (await replaceToken(trx, row, request, grant, context.sealer)) ??
    (await findRetrySuccessor(trx, row, request, context.sealer))
  if (refreshToken === undefined) {
    const refusal = refuse('refresh-token-used')
    const hasEnded = await revokeGrant(trx, grant.id, now)
    return hasEnded ? refusal.withKnown({ endedGrant: 'A used refresh token was sent again' }) : refusal
  }
  await touchGrant(trx, { id: grant.id, now })
  return { grant, scope, refreshToken, nonce: undefined }
}

/** Distinguishes a retry from a replay. */
interface RefreshAttempt {
  readonly hash: string
  readonly now: number
}

const selectToken = prepareQuery((db, { tokenHash, clientId }: { tokenHash: string; clientId: string }) =>
  db
    .selectFrom('refresh_token')
    .innerJoin('grant', 'grant.id', 'refresh_token.grant_id')
    .selectAll('refresh_token')
    .where('token_hash', '=', tokenHash)
    .where('grant.client_id', '=', clientId),
)

/** RFC 6749, 6: the same scopes or fewer. The grant itself does not change. */
function narrowScope(grant: UserGrant, requested: string | undefined): string | AuthRefusal {
  // The granted scopes may exceed the limits of a request.
  if (requested === undefined || requested === grant.scope) return grant.scope
  const refused = checkRequestedScope(requested)
  if (refused) return refused
  const texts = requested.split(' ').filter(text => text !== '')
  const scopes = parseScopes(texts)
  const granted = new ScopeIndex(parseScopes(grant.scope))
  return texts.length > 0 && scopes.length === new Set(texts).size && scopes.every(one => granted.covers(one))
    ? scopes.map(one => one.text).join(' ')
    : refuse('scope-exceeds-grant').withComparison(compareScope(requested, grant.scope, 'granted'))
}

/** Consumes the token by compare-and-set, and creates its successor. Undefined if it was used before. */
async function replaceToken(
  trx: Kysely<Schema>,
  { token_hash: tokenHash, used_at }: TokenRow,
  { hash, now }: RefreshAttempt,
  grant: UserGrant,
  sealer: Sealer,
): Promise<string | undefined> {
  if (used_at !== null) return undefined
  const successor = createRandomToken()
  const { numAffectedRows } = await setSuccessor(trx, {
    tokenHash,
    hash,
    now,
    successorHash: sha256(successor),
    sealed: sealer.seal(successor, toSealedCell(tokenHash)),
  })
  return numAffectedRows === 1n ? createRefreshToken(trx, grant, now, successor) : undefined
}

interface Successor extends RefreshAttempt {
  readonly tokenHash: string
  readonly successorHash: string
  readonly sealed: string
}

const setSuccessor = prepareQuery((db, { tokenHash, hash, now, successorHash, sealed }: Successor) =>
  db
    .updateTable('refresh_token')
    .set({ used_at: now, request_hash: hash, successor_hash: successorHash, successor_sealed: sealed })
    .where('token_hash', '=', tokenHash)
    .where('used_at', 'is', null),
)

/**
 * Finds the successor if this is a retry. Reads the row again, because another request may have just used the token.
 */
async function findRetrySuccessor(
  trx: Kysely<Schema>,
  { token_hash }: TokenRow,
  { hash, now }: RefreshAttempt,
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
    : sealer.tryOpen(used.successor_sealed, toSealedCell(token_hash))
}
