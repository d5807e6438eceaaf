import type { Kysely } from 'kysely'
import { parseScopes } from '../../../smart/index.ts'
import type { Schema } from '../../../store/index.ts'
import { LIFETIME } from '../../base/limits.ts'
import { type Client, findClient } from '../../oauth/clients/client.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { hasScope, keepUsableGrants, selectGrants, type UsableGrant } from '../../oauth/grants/grant.ts'
import { summarizeScopes } from '../../words/scopes.ts'

/** The access of an app on behalf of a user, from all its grants. */
export interface AppAccess {
  readonly client: Client
  /** The scopes of all grants. */
  readonly scope: string
  /** The ids of the patients, last used first; `every` with `user/` scopes. */
  readonly patients: readonly string[] | 'every'
  /** The scopes for each patient. */
  readonly scopeOf: ReadonlyMap<string, string>
  readonly lastUsedAt: number
  /** Undefined: until the user ends it. */
  readonly endsAt: number | undefined
  /** Whether it goes on after the sign-in. */
  readonly isOffline: boolean
  /** Whether it acts as an agent: its tokens are for the MCP endpoint. */
  readonly isAgent: boolean
}

/** Finds the apps with current access on behalf of this user, last used first. */
export async function findAccess(context: AuthContext, userId: string): Promise<readonly AppAccess[]> {
  const grants = await findGrants(context, userId)
  const all = [...Map.groupBy(grants, grant => grant.client_id)].map(async ([id, ofClient]) => {
    const client = await findClient(context.store.db, context, id)
    return client && summarizeAccess(client, ofClient)
  })
  return (await Promise.all(all))
    .filter(access => access !== undefined)
    .toSorted((a, b) => b.lastUsedAt - a.lastUsedAt)
}

/** The access that a user ends: of an app, to one record or to all. */
interface EndedAccess {
  readonly userId: string
  readonly clientId: string
  readonly patient: string | undefined
  readonly now: number
}

/** Revokes all grants of an app at once, or those for one record. False if there were none. */
export async function removeAccess(
  db: Kysely<Schema>,
  { userId, clientId, patient, now }: EndedAccess,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('grant')
    .set({ revoked_at: now })
    .where('clinician_id', '=', userId)
    .where('client_id', '=', clientId)
    .where('revoked_at', 'is', null)
    .$if(patient !== undefined, query => query.where('patient_id', '=', patient ?? ''))
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Whether the access to a record can be ended apart from that to others: no grant of the app opens every record. */
export function hasRecord({ patients }: AppAccess, patient: string): boolean {
  return patients !== 'every' && patients.includes(patient)
}

async function findGrants(
  { store: { db }, rules, clock }: Pick<AuthContext, 'store' | 'rules' | 'clock'>,
  userId: string,
): Promise<readonly UsableGrant[]> {
  const rows = await selectGrants(db)
    .where('grant.clinician_id', '=', userId)
    .where('revoked_at', 'is', null)
    .where(({ eb, or }) =>
      or([eb('login.expires_at', '>', clock()), eb('last_used_at', '>', clock() - LIFETIME.offlineRefresh)]),
    )
    .orderBy('last_used_at', 'desc')
    .execute()
  return keepUsableGrants(db, rules, rows, clock())
}

function summarizeAccess(client: Client, grants: readonly UsableGrant[]): AppAccess {
  const scope = uniteScopes(grants)
  const byPatient = Map.groupBy(
    grants.filter(grant => grant.patient_id !== null),
    grant => grant.patient_id ?? '',
  )
  const ends = grants.flatMap(({ ends_at }) => ends_at ?? [])
  return {
    client,
    scope,
    patients: coversEveryPatient(scope) ? 'every' : [...byPatient.keys()],
    isAgent: grants.some(({ resource }) => resource !== null),
    scopeOf: new Map([...byPatient].map(([patient, own]) => [patient, uniteScopes(own)])),
    lastUsedAt: grants[0]?.last_used_at ?? 0,
    endsAt: ends.length < grants.length ? undefined : ends.reduce((last, end) => Math.max(last, end), 0),
    isOffline: hasScope(scope, 'offline_access'),
  }
}

function uniteScopes(grants: readonly UsableGrant[]): string {
  return [...new Set(grants.flatMap(grant => grant.scope.split(' ')))].join(' ')
}

function coversEveryPatient(scope: string): boolean {
  return parseScopes(scope).some(part => part.kind === 'resource' && part.context === 'user')
}

/** Whether an app may do other things with one record than with another. */
export function differsByRecord({ patients, scopeOf }: AppAccess): boolean {
  const summaries = [...scopeOf.values()].map(scope => summarizeScopes(scope))
  return patients !== 'every' && new Set(summaries).size > 1
}
