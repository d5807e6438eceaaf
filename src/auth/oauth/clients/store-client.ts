import { type Kysely, sql, type Transaction } from 'kysely'
import {
  containsText,
  createRandomToken,
  REMOVED,
  revokeGrantTokens,
  type Schema,
  type Store,
  sha256,
} from '../../../store/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { revokeClientTokens } from '../revoked-tokens.ts'
import { type Client, findRegisteredClient, findStoredRow, toClient } from './client.ts'
import { storeOrigins } from './origins.ts'
import {
  type ClientFault,
  type ClientProperties,
  findClientFault,
  findClientIdFault,
  ID_TAKEN,
  type Registrar,
} from './validate.ts'

/** An app that was registered or changed. Only its hash is stored, so show a new secret now. */
export interface StoredClient {
  readonly id: string
  readonly secret: string | undefined
}

export type ClientChanges = Partial<ClientProperties> & {
  /** Replaces the secret of an app that has one: by this one, or by a random one. */
  readonly newSecret?: boolean | string
}

/** Registers an app. */
export async function insertClient(
  trx: Transaction<Schema>,
  id: string,
  {
    app,
    now,
    secret: chosen,
    ...registrar
  }: {
    readonly app: ClientProperties
    readonly now: number
    readonly secret?: string | undefined
  } & Registrar,
): Promise<StoredClient | ClientFault> {
  const fault = findClientIdFault(id) ?? findClientFault(app, registrar)
  if (fault) return fault
  const secret = app.authMethod === 'client_secret' ? (chosen ?? createRandomToken()) : undefined
  const added = await trx
    .insertInto('client')
    .values({
      ...toColumns(app, id),
      ...hashSecret(secret),
      client_id: id,
      created_at: now,
      for_loopback: registrar.isForLoopback ?? false,
      registered_by: eb =>
        eb
          .selectFrom('clinician')
          .select('id')
          .where('id', '=', registrar.accountId ?? null),
    })
    .onConflict(conflict => conflict.column('client_id').doNothing())
    .returning('client_id')
    .executeTakeFirst()
  if (!added) return ID_TAKEN
  await storeOrigins(trx, id)
  return { id, secret }
}

/**
 * Changes the given properties. A new scope ends the access that users gave the app: they have to consent again. Undefined
 * if there is no such app.
 */
export async function updateClient(
  trx: Transaction<Schema>,
  id: string,
  { changes, ...registrar }: { readonly changes: ClientChanges } & Registrar,
): Promise<StoredClient | ClientFault | undefined> {
  const client = await findRegisteredClient(trx, id)
  if (!client) return undefined
  const app = {
    ...client,
    ...changes,
    ...(changes.authMethod && chooseKeys(changes)),
    scope: chooseScope(client.scope, changes.scope),
  }
  const fault = findClientFault(app, registrar)
  if (fault) return fault
  const { newSecret = false } = changes
  const keepsSecret =
    app.authMethod === 'client_secret' && client.authMethod === 'client_secret' && newSecret === false
  const secret = app.authMethod === 'client_secret' && !keepsSecret ? createSecret(newSecret) : undefined
  await trx
    .updateTable('client')
    .set({ ...toColumns(app, id), ...(!keepsSecret && hashSecret(secret)) })
    .where('client_id', '=', id)
    .execute()
  await storeOrigins(trx, id)
  return { id, secret }
}

/** Access ends with another text, so the same scopes in another order keep theirs. */
function chooseScope(before: string, after = before): string {
  const [old, next] = [before, after].map(text => new Set(text.split(' ')))
  return old && next && old.symmetricDifference(next).size === 0 ? before : after
}

/** Another method of authentication replaces the keys. */
function chooseKeys({ jwks, jwksUrl }: ClientChanges): Pick<ClientProperties, 'jwks' | 'jwksUrl'> {
  return { jwks, jwksUrl }
}

/** Approves an app that registered itself. It stays for loopback if the administrator is. False if there is none. */
export async function setClientApproved(
  db: Kysely<Schema>,
  id: string,
  { isForLoopback = false }: Registrar,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('client')
    .set({ approved: true, ...(!isForLoopback && { for_loopback: false }) })
    .where('client_id', '=', id)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Rows of an app that are deleted in one transaction, during which others wait. */
const ROWS_AT_ONCE = 1_000

/**
 * Removes an app with its grants. Its access ends at once:
 * - grants, because their client is gone (`selectGrants`), and with them the sessions of its users, when they next need a token;
 * - access tokens of its users: `revokeGrantTokens`, or settle.ts if there are many rows;
 * - access tokens of a backend service: `revokeClientTokens`.
 *
 * The rows of an app with many are deleted by the next sweep, in small steps; until then its id cannot be registered again.
 * False if there is no such app.
 */
export async function deleteClient(trx: Transaction<Schema>, id: string, now: number): Promise<boolean> {
  const client = await findStoredRow(trx, id)
  if (!client) return false
  await revokeClientTokens(trx, client, now)
  if (await hasManyRows(trx, id)) {
    // With `enabled_at`, its grants belong to another client, whatever happens to the row.
    const ended = { disabled: true, enabled_at: now, expires_at: REMOVED }
    await trx.updateTable('client').set(ended).where('client_id', '=', id).execute()
  } else {
    await revokeGrantTokens(trx, sql`client_id = ${id}`, now)
    await trx.deleteFrom('client').where('client_id', '=', id).execute()
  }
  return true
}

async function hasManyRows(trx: Transaction<Schema>, id: string): Promise<boolean> {
  const grants = trx.selectFrom('grant').where('client_id', '=', id)
  const tokens = grants.innerJoin('refresh_token', 'refresh_token.grant_id', 'grant.id')
  const grant = await grants.select('grant.id').limit(1).offset(ROWS_AT_ONCE).executeTakeFirst()
  const token = await tokens.select('grant.id').limit(1).offset(ROWS_AT_ONCE).executeTakeFirst()
  return grant !== undefined || token !== undefined
}

/** A page of the registered apps, by name. Temporary clients are left out. */
export async function listRegisteredClients(
  { db }: Pick<Store, 'db'>,
  { text, page = 0 }: { readonly text?: string | undefined; readonly page?: number },
): Promise<{ readonly apps: readonly Client[]; readonly hasMore: boolean }> {
  // Sorts only the ids: the rows may contain long key sets.
  const ids = db
    .selectFrom('client')
    .select('client_id')
    .where('expires_at', 'is', null)
    .$if(text !== undefined, query => query.where(containsText(['name'], text ?? '')))
    .orderBy('name')
    .orderBy('client_id')
    .limit(LIMITS.appsPerPage + 1)
    .offset(page * LIMITS.appsPerPage)
  const rows = await db
    .selectFrom('client')
    .selectAll()
    .where('client_id', 'in', ids)
    .orderBy('name')
    .orderBy('client_id')
    .execute()
  return { apps: rows.slice(0, LIMITS.appsPerPage).map(toClient), hasMore: rows.length > LIMITS.appsPerPage }
}

function createSecret(chosen: boolean | string): string {
  return typeof chosen === 'string' ? chosen : createRandomToken()
}

function hashSecret(secret: string | undefined) {
  return { secret_hash: secret === undefined ? null : sha256(secret) }
}

function toColumns(app: ClientProperties, id: string) {
  return {
    name: app.name ?? id,
    description: app.description ?? null,
    logo_url: app.logoUrl ?? null,
    website_url: app.websiteUrl ?? null,
    policy_url: app.policyUrl ?? null,
    terms_url: app.termsUrl ?? null,
    contacts: JSON.stringify(app.contacts),
    auth_method: app.authMethod,
    jwks: app.jwks ?? null,
    jwks_url: app.jwksUrl ?? null,
    redirect_uris: JSON.stringify(app.redirectUris),
    post_logout_redirect_uris: JSON.stringify(app.postLogoutRedirectUris),
    launch_url: app.launchUrl ?? null,
    scope: app.scope,
    first_party: app.firstParty,
    approved: app.approved,
    pkce_required: app.pkceRequired,
    iss_parameter: app.issParameter,
  }
}
