import type { AuthContext } from '../context.ts'
import type { Login } from '../login/login.ts'

/** A login of the user in a browser. */
export interface SignIn {
  /** The hash of its cookie, which opens nothing by itself. */
  readonly id: string
  readonly isCurrent: boolean
  readonly createdAt: number
  readonly lastUsedAt: number
  readonly endsAt: number
}

/** The user's logins, the current one first, then the last used. */
export async function findSignIns({ store, clock }: AuthContext, login: Login): Promise<readonly SignIn[]> {
  const rows = await store.db
    .selectFrom('login')
    .select(['id_hash', 'created_at', 'seen_at', 'expires_at'])
    .where('clinician_id', '=', login.clinician.id)
    .where('expires_at', '>', clock())
    .execute()
  return rows
    .map(row => ({
      id: row.id_hash,
      isCurrent: row.id_hash === login.idHash,
      createdAt: row.created_at,
      lastUsedAt: row.seen_at ?? row.created_at,
      endsAt: row.expires_at,
    }))
    .toSorted((a, b) => Number(b.isCurrent) - Number(a.isCurrent) || b.lastUsedAt - a.lastUsedAt)
}
