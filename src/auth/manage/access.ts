import type { Kysely } from 'kysely'
import { parseScopes } from '../../smart/index.ts'
import type { Schema, Store } from '../../store/index.ts'
import { type Client, findClient } from '../client/client.ts'
import { hasScope } from '../grant/grant.ts'
import { LIFETIME } from '../lifetimes.ts'

/** The access of an app on behalf of a clinician, from all its grants. */
export interface AppAccess {
  readonly client: Client
  /** The scopes of all grants. */
  readonly scope: string
  /** The ids of the patients; `every` with `user/` scopes. */
  readonly patients: readonly string[] | 'every'
  readonly lastUsedAt: number
  /** Undefined: until the clinician removes it. */
  readonly endsAt: number | undefined
}

interface LiveGrant {
  readonly client_id: string
  readonly scope: string
  readonly patient_id: string | null
  readonly last_used_at: number
  readonly login_expires_at: number | null
}

/** Finds the apps with current access on behalf of this clinician, last used first. */
export async function findAccess(
  store: Store,
  clinicianId: string,
  { now, accessTokenTtlMs }: { readonly now: number; readonly accessTokenTtlMs: number },
): Promise<readonly AppAccess[]> {
  const grants = (await findGrants(store, clinicianId, now)).flatMap(grant => {
    const endsAt = findEnd(grant, accessTokenTtlMs)
    return endsAt === undefined || endsAt > now ? [{ ...grant, endsAt }] : []
  })
  const byClient = [...Map.groupBy(grants, grant => grant.client_id)]
  const all = await Promise.all(
    byClient.map(async ([id, some]) => {
      const client = await findClient(store, id)
      return client && summarizeAccess(client, some)
    }),
  )
  return all.filter(access => access !== undefined).toSorted((a, b) => b.lastUsedAt - a.lastUsedAt)
}

/** Revokes all grants of an app at once. False if there were none. */
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

/** When a grant ends: never, with the login, or with its last access token. */
function findEnd(grant: LiveGrant, accessTokenTtlMs: number): number | undefined {
  if (hasScope(grant.scope, 'offline_access')) return undefined
  const lastToken = grant.last_used_at + accessTokenTtlMs
  const login = grant.login_expires_at ?? 0
  return hasScope(grant.scope, 'online_access') ? login : Math.min(login, lastToken)
}

function summarizeAccess(
  client: Client,
  grants: readonly (LiveGrant & { endsAt: number | undefined })[],
): AppAccess {
  const scope = [...new Set(grants.flatMap(grant => grant.scope.split(' ')))].join(' ')
  const ends = grants.flatMap(({ endsAt }) => endsAt ?? [])
  return {
    client,
    scope,
    patients: coversEveryPatient(scope)
      ? 'every'
      : [...new Set(grants.flatMap(grant => grant.patient_id ?? []))],
    lastUsedAt: Math.max(...grants.map(grant => grant.last_used_at)),
    endsAt: ends.length < grants.length ? undefined : Math.max(...ends),
  }
}

function coversEveryPatient(scope: string): boolean {
  return parseScopes(scope).some(one => one.kind === 'resource' && one.context === 'user')
}
