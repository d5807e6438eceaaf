import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Transaction } from 'kysely'
import type { AuditRecord } from '../../../audit/index.ts'
import { isFailure, readText } from '../../../core/index.ts'
import { type Schema, sha256 } from '../../../store/index.ts'
import { auditEvent, describeRefusal } from '../../base/audit.ts'
import { paths } from '../../base/paths.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import { forbidCaching, readForm, readParameters, sendOAuthError } from '../../base/request.ts'
import { consumeProof, type VerifiedClient, verifyClient } from '../clients/authenticate.ts'
import type { Client } from '../clients/client.ts'
import { answerPreflight, createOriginHook, limitToClientOrigins } from '../clients/origins.ts'
import type { AuthContext } from '../context.ts'
import { type AuditedGrant, findGrantForAudit, revokeGrant } from '../grants/grant.ts'
import { verifyOwnJwt } from '../keys/key-ring.ts'
import type { PublicJwk } from '../keys/signing-key.ts'
import { revokeTokens } from '../revoked-tokens.ts'
import { createRevocationLists } from './list.ts'

/** `POST /oauth2/revoke` (RFC 7009), and `GET /oauth2/revocations`, the list for FHIR servers. */
export function addRevokeRoutes(app: FastifyInstance, context: AuthContext): void {
  const allowOrigin = createOriginHook(context.store)
  app.options(paths.revoke, { onRequest: allowOrigin }, answerPreflight)
  app.post(paths.revoke, { onRequest: [forbidCaching, allowOrigin] }, async (request, reply) => {
    const refusal = await handleRevocation(context, request, reply)
    if (!refusal) return reply.code(200).send()
    const event = { kind: 'revoke', client: refusal.known.clientId, anonymous: true } as const
    await auditEvent(context, request, { ...event, ...describeRefusal(refusal) })
    return sendOAuthError(request, reply, refusal)
  })

  const findRevocations = createRevocationLists(context)
  app.get(paths.revocations, async (request, reply) => {
    const since = readParameters(request.query).get('since') ?? ''
    // An invalid `since` gets the whole list.
    const list = await findRevocations(/^\d{1,15}$/.test(since) ? Number(since) : 0)
    return reply.header('cache-control', 'no-store').type('application/json; charset=utf-8').send(list)
  })
}

async function handleRevocation(
  context: AuthContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<AuthRefusal | undefined> {
  const form = readForm(request)
  if (isFailure(form)) return form
  const verified = await verifyClient(context, request.headers.authorization, form)
  if (isFailure(verified)) return verified
  limitToClientOrigins(verified.client, request, reply)
  return revokeRecorded(context, request, verified, form.get('token'))
}

/** Consumes the client's assertion, revokes the token and writes the audit record in one transaction. */
async function revokeRecorded(
  context: AuthContext,
  request: FastifyRequest,
  verified: VerifiedClient,
  token: string | undefined,
): Promise<AuthRefusal | undefined> {
  const keys = await context.keys.listPublicKeys()
  return context.store.db.transaction().execute(async trx => {
    const client = await consumeProof(trx, verified)
    if (isFailure(client)) return client
    if (token === undefined) return refuse('parameter-missing', { parameter: 'token' })
    const ended = await revokeToken(trx, context, { client, token, keys })
    const event = { kind: 'revoke', status: 200, client: client.id } as const
    const said = { reason: 'The app revoked the token', details: { event: 'token-revoked' } } as const
    if (ended) await auditEvent(context, request, { ...ended, ...event, ...said }, trx)
    return undefined
  })
}

/** The owner of the revoked token. */
type RevokedToken = AuditedGrant | Pick<AuditRecord, 'subject' | 'patient' | 'launch'>

interface TokenToRevoke {
  readonly client: Client
  readonly token: string
  /** The keys of this server's access tokens. */
  readonly keys: readonly PublicJwk[]
}

/**
 * Revokes a token (RFC 7009) and returns its owner. A refresh token, even a rotated one, revokes its grant with all
 * tokens; an access token only itself. Does nothing with unknown, ended and other clients' tokens.
 */
async function revokeToken(
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
  if (!(await revokeTokens(trx, jti, clock(), exp * 1000))) return undefined
  return { subject: readText(sub), patient: readText(patient), launch: jti.split('.')[0] }
}
