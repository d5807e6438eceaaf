import type { Kysely, Selectable } from 'kysely'
import type { Schema } from '../../store/index.ts'

export type KnownAccount = Selectable<Schema['removed_clinician']>
type KnownApp = Selectable<Schema['removed_client']>

/** Finds accounts by their ids, also those that were removed: audit records name them. */
export async function findKnownAccounts(
  db: Kysely<Schema>,
  ids: Iterable<string | null>,
): Promise<ReadonlyMap<string, KnownAccount>> {
  const wanted = listIds(ids)
  if (wanted.length === 0) return new Map()
  const read = (table: 'clinician' | 'removed_clinician') =>
    db
      .selectFrom(table)
      .select(['id', 'username', 'display_name', 'fhir_user_id'])
      .where('id', 'in', wanted)
      .execute()
  const accounts = [...(await read('removed_clinician')), ...(await read('clinician'))]
  return new Map(accounts.map(account => [account.id, account]))
}

/** Finds apps by their ids, also those that were removed. An app that has the id of a removed one is the one. */
export async function findKnownApps(
  db: Kysely<Schema>,
  ids: Iterable<string | null>,
): Promise<ReadonlyMap<string, KnownApp>> {
  const wanted = listIds(ids)
  if (wanted.length === 0) return new Map()
  const read = (table: 'client' | 'removed_client') =>
    db
      .selectFrom(table)
      .select(['client_id', 'name', 'first_party'])
      .where('client_id', 'in', wanted)
      .execute()
  const apps = [...(await read('removed_client')), ...(await read('client'))]
  return new Map(apps.map(app => [app.client_id, app]))
}

function listIds(ids: Iterable<string | null>): readonly string[] {
  return [...new Set(ids)].filter(id => id !== null)
}
