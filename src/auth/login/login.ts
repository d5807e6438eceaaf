import { type Kysely, sql, type Transaction } from 'kysely'
import { createRandomToken, type Schema, type Store, sha256 } from '../../store/index.ts'
import { type Clinician, toClinician } from '../clinician/clinician.ts'
import { LIFETIME } from '../lifetimes.ts'

/** A clinician's login in a browser. */
export interface Login {
  readonly idHash: string
  readonly clinician: Clinician
  readonly createdAt: number
  readonly lastUsedAt: number
  readonly mayViewActivity?: boolean
}

/** Finds the login of a cookie, unless it has expired or its clinician is disabled. */
export async function findLogin({ db }: Store, id: string, now: number): Promise<Login | undefined> {
  const row = await db
    .selectFrom('login')
    .innerJoin('clinician', 'clinician.id', 'login.clinician_id')
    .select(['id_hash', 'created_at', 'seen_at', 'clinician.id', 'username', 'display_name', 'fhir_user_id'])
    .where('id_hash', '=', sha256(id))
    .where('expires_at', '>', now)
    .where('disabled', '=', false)
    .executeTakeFirst()
  return (
    row && {
      idHash: row.id_hash,
      createdAt: row.created_at,
      lastUsedAt: row.seen_at ?? row.created_at,
      clinician: toClinician(row),
    }
  )
}

const NOTED_MS = 60_000

/** Records that a login is in use, at most once a minute, to save writes. */
export async function recordLoginUse(
  { db }: Store,
  { idHash, lastUsedAt }: Login,
  now: number,
): Promise<void> {
  if (now - lastUsedAt < NOTED_MS) return
  await db.updateTable('login').set({ seen_at: now }).where('id_hash', '=', idHash).execute()
}

/**
 * Begins a login with a new id, against session fixation. The previous login of the browser ends; its grants move to the
 * new login if it is the same clinician.
 */
export async function beginLogin(
  trx: Transaction<Schema>,
  clinicianId: string,
  before: Login | undefined,
  now: number,
): Promise<string> {
  const id = createRandomToken()
  await trx
    .insertInto('login')
    .values({
      id_hash: sha256(id),
      clinician_id: clinicianId,
      created_at: now,
      expires_at: now + LIFETIME.login,
    })
    .execute()
  if (before?.clinician.id === clinicianId) await moveGrants(trx, before.idHash, sha256(id))
  if (before) await endLogin(trx, before.idHash, now)
  return id
}

/**
 * Ends every login of a clinician, and all grants or only those without `offline_access`.
 */
export async function endAccess(
  trx: Kysely<Schema>,
  clinicianId: string,
  { now, keepOffline }: { readonly now: number; readonly keepOffline: boolean },
): Promise<void> {
  await trx.deleteFrom('login').where('clinician_id', '=', clinicianId).execute()
  await trx
    .updateTable('grant')
    .set({ revoked_at: now })
    .where('clinician_id', '=', clinicianId)
    .where('revoked_at', 'is', null)
    .$if(keepOffline, query => query.where(isOnline))
    .execute()
}

// With spaces, because it may also be a value in a granular scope.
const isOnline = sql<boolean>`' ' || scope || ' ' not like '% offline_access %'`

async function moveGrants(trx: Kysely<Schema>, from: string, to: string): Promise<void> {
  await trx.updateTable('grant').set({ login_id_hash: to }).where('login_id_hash', '=', from).execute()
}

/** Ends a login and its grants without `offline_access`. */
export async function endLogin(trx: Transaction<Schema>, idHash: string, now: number): Promise<void> {
  await trx.deleteFrom('login').where('id_hash', '=', idHash).execute()
  await trx
    .updateTable('grant')
    .set({ revoked_at: now })
    .where('login_id_hash', '=', idHash)
    .where('revoked_at', 'is', null)
    .where(isOnline)
    .execute()
}
