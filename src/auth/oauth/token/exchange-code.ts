import type { Kysely, Selectable } from 'kysely'
import { isSameText, prepareQuery, type Schema, sha256 } from '../../../store/index.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import type { Parameters } from '../../base/request.ts'
import { checkTokenResource } from '../agents/resource.ts'
import type { AuthContext } from '../context.ts'
import { findLiveGrant, revokeGrant } from '../grants/grant.ts'
import { readExtension } from '../hooks.ts'
import type { TokenGrant, TokenRequest } from './token-response.ts'
import { createRefreshToken, touchGrant } from './token-response.ts'

/**
 * `grant_type=authorization_code`. One transaction consumes the code by compare-and-set and creates the refresh token that
 * it is exchanged for. A second use revokes the grant (RFC 6749, 4.1.2).
 */
export async function exchangeCode(
  context: Pick<AuthContext, 'clock' | 'rules' | 'hooks' | 'settings'>,
  { trx, client, form }: TokenRequest,
): Promise<TokenGrant | AuthRefusal> {
  const { clock } = context
  const code = form.get('code')
  if (code === undefined) return refuse('parameter-missing', { parameter: 'code' })
  if (form.get('redirect_uri') === undefined) return refuse('token-redirect-uri-missing')
  const [row] = (await selectCode(trx, { codeHash: sha256(code), clientId: client.id })).rows
  const isPkceRequired = client.pkceRequired && !readExtension(context, row).isPkceOptional
  if (isPkceRequired && form.get('code_verifier') === undefined) return refuse('code-verifier-missing')
  if (!row) return refuse('code-unknown')
  const refusal =
    checkCode(row, form, clock()) ?? checkTokenResource(form, row.resource ?? context.settings.fhirBaseUrl)
  if (refusal) return refusal
  if (row.used_at !== null || !(await consumeCode(trx, row.code_hash, clock()))) {
    const refusal = refuse('code-used')
    const hasEnded = await revokeGrant(trx, row.grant_id, clock())
    return hasEnded ? refusal.withKnown({ endedGrant: 'A used code was sent again' }) : refusal
  }
  return redeem(trx, row, context)
}

type CodeRow = Selectable<Schema['authorization_code']> &
  Pick<Selectable<Schema['grant']>, 'extension' | 'resource'>

const selectCode = prepareQuery((db, { codeHash, clientId }: { codeHash: string; clientId: string }) =>
  db
    .selectFrom('authorization_code')
    .innerJoin('grant', 'grant.id', 'authorization_code.grant_id')
    .selectAll('authorization_code')
    .select(['grant.extension', 'grant.resource'])
    .where('code_hash', '=', codeHash)
    .where('grant.client_id', '=', clientId),
)

function checkCode(row: CodeRow, form: Parameters, now: number): AuthRefusal | undefined {
  const origin = 'in the authorization request'
  const { redirect_uri, code_challenge } = row
  if (redirect_uri !== form.get('redirect_uri'))
    return refuse('code-redirect-uri-differs').withComparison({
      name: 'redirect_uri',
      sent: form.get('redirect_uri'),
      expected: [redirect_uri],
      origin,
    })
  if (!matchesChallenge(code_challenge, form.get('code_verifier')))
    return refuse('code-verifier-wrong').withComparison({
      name: 'code_verifier',
      sent: describeVerifier(form),
      expected: [describeChallenge(code_challenge)],
      origin,
    })
  // A used code never counts as expired, so that its replay still revokes the grant.
  return row.used_at === null && row.expires_at <= now ? refuse('code-expired') : undefined
}

/** The verifier itself is a secret. */
function describeVerifier(form: Parameters): string | undefined {
  const verifier = form.get('code_verifier')
  return verifier === undefined ? undefined : `one with ${verifier.length} characters`
}

function describeChallenge(challenge: string): string {
  return challenge === '' ? 'no code_challenge' : 'another code_challenge (S256)'
}

function matchesChallenge(challenge: string, verifier: string | undefined): boolean {
  // RFC 9700, 4.8.2: a verifier without a challenge may be a PKCE downgrade attack.
  if (challenge === '' || verifier === undefined) return challenge === '' && verifier === undefined
  // RFC 7636, 4.1.
  return /^[\w.~-]{43,128}$/.test(verifier) && isSameText(sha256(verifier), challenge)
}

async function consumeCode(trx: Kysely<Schema>, codeHash: string, now: number): Promise<boolean> {
  const { numAffectedRows } = await setCodeUsed(trx, { codeHash, now })
  return numAffectedRows === 1n
}

const setCodeUsed = prepareQuery((db, { codeHash, now }: { codeHash: string; now: number }) =>
  db
    .updateTable('authorization_code')
    .set({ used_at: now })
    .where('code_hash', '=', codeHash)
    .where('used_at', 'is', null),
)

async function redeem(
  trx: Kysely<Schema>,
  row: CodeRow,
  context: Pick<AuthContext, 'clock' | 'rules' | 'hooks'>,
): Promise<TokenGrant | AuthRefusal> {
  const now = context.clock()
  const grant = await findLiveGrant(trx, context, row.grant_id)
  if (!grant) return refuse('code-grant-ended')
  const refusal = readExtension(context, grant).refuse?.('token')
  if (refusal) return refusal
  await touchGrant(trx, { id: grant.id, now })
  const refreshToken = await createRefreshToken(trx, grant, now)
  return { grant, scope: grant.scope, refreshToken, nonce: row.nonce ?? undefined }
}
