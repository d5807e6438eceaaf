import type { Kysely } from 'kysely'
import { parseScopes } from '../../smart/index.ts'
import type { Schema, Store } from '../../store/index.ts'
import { type Client, findClient } from '../client/client.ts'
import { hasScope } from '../grant/grant.ts'
import { LIFETIME } from '../lifetimes.ts'

/** What one app may do in the name of a clinician, over all that the clinician gave it. */
export interface AppAccess {
  readonly client: Client
  /** Everything that it may do for any of its patients. */
  readonly scope: string
  /** How many patients it was opened for; every one where it has `user/` scopes. */
  readonly patients: number | 'every'
  readonly lastUsedAt: number
  /** Undefined: until the clinician takes it back. */
  readonly endsAt: number | undefined
}

interface LiveGrant {
  readonly client_id: string
  readonly scope: string
  readonly patient_id: string | null
  readonly last_used_at: number
  readonly login_expires_at: number | null
}

/** The apps that can reach a record in the name of this clinician now, last used first. */
export async function findAccess(
  store: Store,
  clinicianId: string,
  { now, accessTokenTtlMs }: { readonly now: number; readonly accessTokenTtlMs: number },
): Promise<readonly AppAccess[]> {
  const grants = (await findGrants(store, clinicianId, now)).flatMap(grant => {
    const endsAt = endOf(grant, accessTokenTtlMs)
    return endsAt === undefined || endsAt > now ? [{ ...grant, endsAt }] : []
  })
  const byClient = [...Map.groupBy(grants, grant => grant.client_id)]
  const all = await Promise.all(
    byClient.map(async ([id, some]) => {
      const client = await findClient(store, id)
      return client && accessOf(client, some)
    }),
  )
  return all.filter(access => access !== undefined).toSorted((a, b) => b.lastUsedAt - a.lastUsedAt)
}

/** Takes back what an app was given, effective at once. Tells whether there was anything. */
export async function removeAccess(
  db: Kysely<Schema>,
  {
    clinicianId,
    clientId,
    now,
  }: { readonly clinicianId: string; readonly clientId: string; readonly now: number },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('grant')
    .set({ revoked_at: now })
    .where('clinician_id', '=', clinicianId)
    .where('client_id', '=', clientId)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

function findGrants({ db }: Store, clinicianId: string, now: number): Promise<readonly LiveGrant[]> {
  return db
    .selectFrom('grant')
    .leftJoin('login', 'login.id_hash', 'grant.login_id_hash')
    .select(['client_id', 'scope', 'patient_id', 'last_used_at', 'login.expires_at as login_expires_at'])
    .where('grant.clinician_id', '=', clinicianId)
    .where('revoked_at', 'is', null)
    .where(({ eb, or }) =>
      or([eb('login.expires_at', '>', now), eb('last_used_at', '>', now - LIFETIME.offlineRefresh)]),
    )
    .execute()
}

/** Until when a grant can be used: for ever, as long as the login, or as long as its last access token. */
function endOf(grant: LiveGrant, accessTokenTtlMs: number): number | undefined {
  if (hasScope(grant.scope, 'offline_access')) return undefined
  const lastToken = grant.last_used_at + accessTokenTtlMs
  const login = grant.login_expires_at ?? 0
  return hasScope(grant.scope, 'online_access') ? login : Math.min(login, lastToken)
}

function accessOf(
  client: Client,
  grants: readonly (LiveGrant & { endsAt: number | undefined })[],
): AppAccess {
  const scope = [...new Set(grants.flatMap(grant => grant.scope.split(' ')))].join(' ')
  const ends = grants.flatMap(({ endsAt }) => endsAt ?? [])
  return {
    client,
    scope,
    patients: reachesEvery(scope) ? 'every' : new Set(grants.flatMap(grant => grant.patient_id ?? [])).size,
    lastUsedAt: Math.max(...grants.map(grant => grant.last_used_at)),
    endsAt: ends.length < grants.length ? undefined : Math.max(...ends),
  }
}

function reachesEvery(scope: string): boolean {
  return parseScopes(scope).some(one => one.kind === 'resource' && one.context === 'user')
}
