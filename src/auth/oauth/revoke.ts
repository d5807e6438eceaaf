import { hash } from 'node:crypto'
import { setImmediate as yieldTurn } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Transaction } from 'kysely'
import type { AuditRecord } from '../../audit/index.ts'
import { createCachedFetch } from '../../cache/index.ts'
import { readText } from '../../core/index.ts'
import { isFailure } from '../../fhir/index.ts'
import { type Schema, type Store, sha256 } from '../../store/index.ts'
import { auditEvent, describeRefusal } from '../base/audit.ts'
import { LIMITS } from '../base/limits.ts'
import { paths } from '../base/paths.ts'
import { Refusal } from '../base/refusal.ts'
import { forbidCaching, readForm, readParameters, sendOAuthError } from '../base/request.ts'
import { consumeProof, type VerifiedClient, verifyClient } from './clients/authenticate.ts'
import type { Client } from './clients/client.ts'
import { answerPreflight, createOriginHook, limitToClientOrigins } from './clients/urls.ts'
import type { AuthContext } from './context.ts'
import { type AuditedGrant, findGrantForAudit, revokeGrant } from './grants/grant.ts'
import { computeMaxTokenSeconds } from './hooks.ts'
import { verifyOwnJwt } from './keys/key-ring.ts'
import type { PublicJwk } from './keys/signing-key.ts'
import { revoke } from './revocations.ts'

/** The list that FHIR servers fetch every two seconds, so that they need no introspection for each request. */
export interface RevocationList {
  /** Hashes of a `jti` or of the grant id that it begins with. */
  readonly revoked: readonly string[]
  /** Seconds after which the revoked tokens have expired. */
  readonly lifetime: number
  /** The next value of `since`. */
  readonly next: number
}

// A revocation may be committed some time after its timestamp, and clocks of instances differ.
const OVERLAP_MS = 30_000

// FHIR servers request the list every two seconds. One that has not done so for this long gets all revocations.
const RECENT_MS = 10_000

/**
 * The lists as JSON: the recent revocations, or all. Each is generated once for all requests within a short time, because
 * the requests need no login (REVOKE-4).
 */
function createRevocationLists(context: AuthContext): (since: number) => Buffer | Promise<Buffer> {
  const { clock } = context
  const makeList = (freshForMs: number, rangeMs?: number) =>
    createCachedFetch<Buffer>({
      clock,
      fetch: async () => ({ value: await serializeRevocations(context, rangeMs), freshForMs }),
    })
  const recent = makeList(LIMITS.recentRevocationsMs, RECENT_MS + OVERLAP_MS)
  const all = makeList(LIMITS.revocationsMs)
  return since => (since < clock() - RECENT_MS ? all : recent).get('')
}

async function serializeRevocations(
  { store, settings, clock, settle }: AuthContext,
  rangeMs?: number,
): Promise<Buffer> {
  await settle()
  const lifetimeMs = (computeMaxTokenSeconds(settings) + 60) * 1000
  const list = await listRevocations(store, { now: clock(), lifetimeMs, rangeMs })
  return Buffer.from(JSON.stringify(list))
}

/**
 * The revocations within `rangeMs` until now, or all. The list is public, so it contains hashes, and no ids of grants or
 * tokens.
 */
async function listRevocations(
  { db }: Pick<Store, 'db'>,
  { now, lifetimeMs, rangeMs }: { now: number; lifetimeMs: number; rangeMs: number | undefined },
): Promise<RevocationList> {
  const [grants, others] = await Promise.all([
    db
      .selectFrom('grant')
      .select('id')
      .where('revoked_at', '>', now - (rangeMs ?? lifetimeMs))
      .execute(),
    db
      .selectFrom('revocation')
      .select(['id', 'expires_at'])
      .$if(rangeMs !== undefined, query => query.where('revoked_at', '>', now - (rangeMs ?? 0)))
      .where('expires_at', '>', now)
      .execute(),
  ])
  const longestMs = others.reduce((most, { expires_at }) => Math.max(most, expires_at - now), lifetimeMs)
  const ids = new Set([...grants, ...others].map(({ id }) => id))
  return { revoked: await computeRevocationKeys(ids), lifetime: Math.ceil(longestMs / 1000), next: now }
}

const KEYS_AT_ONCE = 1_000

/** Other requests are served between the hashes. */
async function computeRevocationKeys(ids: ReadonlySet<string>): Promise<readonly string[]> {
  const keys: string[] = []
  for (const id of ids) if (keys.push(computeRevocationKey(id)) % KEYS_AT_ONCE === 0) await yieldTurn()
  return keys
}

/** 132 bits of the SHA-256, enough against collisions. */
export function computeRevocationKey(id: string): string {
  return hash('sha256', id, 'base64url').slice(0, 22)
}

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
): Promise<Refusal | undefined> {
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
): Promise<Refusal | undefined> {
  const keys = await context.keys.listPublicKeys()
  return context.store.db.transaction().execute(async trx => {
    const client = await consumeProof(trx, verified)
    if (isFailure(client)) return client
    if (token === undefined) return new Refusal('invalid_request', 'The parameter token is missing.')
    const ended = await revokeToken(trx, context, { client, token, keys })
    const event = { kind: 'revoke', status: 200, client: client.id } as const
    if (ended)
      await auditEvent(context, request, { ...ended, ...event, reason: 'The app revoked the token' }, trx)
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
  if (!(await revoke(trx, jti, clock(), exp * 1000))) return undefined
  return { subject: readText(sub), patient: readText(patient), launch: jti.split('.')[0] }
}
