import { randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Transaction } from 'kysely'
import type { Settings } from '../../../config/index.ts'
import { isFailure } from '../../../core/index.ts'
import { isSameText, type Schema, sha256 } from '../../../store/index.ts'
import { auditEvent } from '../../base/audit.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import { forbidCaching, readJson, sendOAuthError } from '../../base/request.ts'
import { type BearerError, sendBearerError } from '../access-token.ts'
import type { Client } from '../clients/client.ts'
import { describeApp } from '../clients/fields.ts'
import { insertClient } from '../clients/store-client.ts'
import type { AuthContext } from '../context.ts'
import { type ClientMetadata, readClientMetadata } from './metadata.ts'

/** `POST /oauth2/register` (RFC 7591). Outside loopback it needs a setting or the initial access token. */
export function addRegisterRoutes(app: FastifyInstance, context: AuthContext): void {
  app.post(paths.register, { onRequest: forbidCaching }, async (request, reply) => {
    const fault = checkRegistration(context.settings, request)
    if (fault) return sendBearerError(reply, fault, 'register')
    const json = readJson(request)
    const metadata = isFailure(json) ? json : readClientMetadata(json.body)
    if (isFailure(metadata)) return sendOAuthError(request, reply, metadata)
    const isAnonymous = request.headers.authorization === undefined
    if (isAnonymous && !context.settings.onLoopback && /(?:^| )system\//.test(metadata.app.scope))
      return sendOAuthError(request, reply, needsAdministrator)
    const tooMuch = isAnonymous ? await checkAnonymous(context, metadata) : undefined
    if (tooMuch) return sendOAuthError(request, reply, tooMuch)
    // The initial access token comes from an administrator, so its clients are approved.
    const registered = await context.store.db.transaction().execute(async trx => {
      const client = await registerClient(trx, metadata, {
        approved: !isAnonymous,
        isForLoopback: isAnonymous && context.settings.onLoopback,
        now: context.clock(),
      })
      const event = { kind: 'register', status: 201, client: client.client_id } as const
      await auditEvent(context, request, event, trx)
      return client
    })
    return reply.code(201).send(registered)
  })
}

// A backend service acts without a user, so an administrator must approve it.
const needsAdministrator = refuse('metadata-system-scopes-of-stranger')

/** Limits what clients without the initial access token store. */
async function checkAnonymous(
  { store }: AuthContext,
  metadata: ClientMetadata,
): Promise<AuthRefusal | undefined> {
  if (JSON.stringify(metadata).length > LIMITS.registrationCharacters)
    return refuse('metadata-too-long', { longest: LIMITS.registrationCharacters })
  const { count } = await store.db
    .selectFrom('client')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('approved', '=', false)
    .executeTakeFirstOrThrow()
  return Number(count) < LIMITS.unapprovedClients
    ? undefined
    : refuse('too-many-unapproved-clients', { most: LIMITS.unapprovedClients })
}

function checkRegistration(
  { openRegistration, registrationToken }: Settings,
  { headers: { authorization } }: FastifyRequest,
): BearerError | undefined {
  const token = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
  if (
    token !== undefined &&
    registrationToken !== undefined &&
    isSameText(sha256(token), sha256(registrationToken))
  )
    return undefined
  if (openRegistration && authorization === undefined) return undefined
  return authorization === undefined ? 'no-token' : 'invalid-token'
}

/** RFC 7591, 3.2.1. */
type Registered = Readonly<Record<string, unknown>>

/** Registers a client with a new id. It is never first-party, so it needs consent. */
async function registerClient(
  trx: Transaction<Schema>,
  metadata: ClientMetadata,
  { approved, isForLoopback, now }: Pick<Client, 'approved' | 'isForLoopback'> & { readonly now: number },
): Promise<Registered & { readonly client_id: string }> {
  const added = await insertClient(trx, randomUUID(), {
    app: { ...metadata.app, approved },
    now,
    isForLoopback,
  })
  if (isFailure(added)) throw new Error(`Cannot register a checked client: ${added.text}`)
  const { id, secret } = added
  return {
    client_id: id,
    client_id_issued_at: Math.floor(now / 1000),
    ...(secret === undefined ? {} : { client_secret: secret, client_secret_expires_at: 0 }),
    ...describeApp(metadata.app),
    token_endpoint_auth_method: metadata.authMethod,
    grant_types: metadata.grantTypes,
    response_types: metadata.grantTypes.includes('authorization_code') ? ['code'] : [],
  }
}
