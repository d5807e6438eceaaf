import { type Kysely, sql, type Transaction } from 'kysely'
import { createRandomToken, type Schema, type Store, sha256 } from '../../store/index.ts'
import { type Clinician, clinicianOf } from '../clinician/clinician.ts'
import { LIFETIME } from '../lifetimes.ts'

/** A clinician's login in one browser. */
export interface Login {
  readonly idHash: string
  readonly clinician: Clinician
  readonly createdAt: number
  readonly lastUsedAt: number
  /** Whether the page with the activity is shown to this clinician. */
  readonly seesActivity?: boolean
}

/** The login that a cookie names, while it lasts and its clinician is not disabled. */
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
      clinician: clinicianOf(row),
    }
  )
}

const NOTED_MS = 60_000

/** Notes that a login is in use: to the minute, so that not every page costs a write. */
export async function useLogin({ db }: Store, { idHash, lastUsedAt }: Login, now: number): Promise<void> {
  if (now - lastUsedAt < NOTED_MS) return
  await db.updateTable('login').set({ seen_at: now }).where('id_hash', '=', idHash).execute()
}

/**
 * Begins a login under a new id, so that nobody can plant one (session fixation). A login that the browser had before
 * ends; what its apps hold goes over to the new one if it is the same clinician who proved who they are once more.
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
  if (before?.clinician.id === clinicianId) await carryGrants(trx, before.idHash, sha256(id))
  if (before) await endLogin(trx, before.idHash, now)
  return id
}

/**
 * Ends every login of a clinician and what apps were given in their name: all of it, or only what would end with the
 * login.
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

// As a word of its own: it may also be a value in a granular scope.
const isOnline = sql<boolean>`' ' || scope || ' ' not like '% offline_access %'`

async function carryGrants(trx: Kysely<Schema>, from: string, to: string): Promise<void> {
  await trx.updateTable('grant').set({ login_id_hash: to }).where('login_id_hash', '=', from).execute()
}

/** Ends a login and with it every grant that lives only as long as the clinician is there. */
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
