import type { Kysely } from 'kysely'
import type { Schema } from '../../store/index.ts'
import { keepGoodLogins, type LoginRow, selectLogins } from './find-login.ts'
import type { AccessRules } from './validity/rule.ts'

/** A login of a user in a browser. */
export interface SignIn {
  /** The hash of its cookie, which opens nothing by itself. */
  readonly id: string
  readonly createdAt: number
  readonly lastUsedAt: number
  readonly endsAt: number
  /** The browser in words, and the address from which the user signed in. */
  readonly browser: string | undefined
  readonly address: string | undefined
}

/** The user's logins that are still good, the last used first. */
export async function findSignIns(
  {
    store: { db },
    rules,
    clock,
  }: {
    readonly store: { readonly db: Kysely<Schema> }
    readonly rules: AccessRules
    readonly clock: () => number
  },
  userId: string,
): Promise<readonly SignIn[]> {
  const logins = await selectLogins(db).where('login.clinician_id', '=', userId).execute()
  const rows = await keepGoodLogins(db, rules, logins, clock())
  return rows.map(toSignIn).toSorted((a, b) => b.lastUsedAt - a.lastUsedAt)
}

export function toSignIn(row: LoginRow): SignIn {
  return {
    id: row.id_hash,
    createdAt: row.created_at,
    lastUsedAt: row.seen_at ?? row.created_at,
    endsAt: row.expires_at,
    browser: row.browser ?? undefined,
    address: row.address ?? undefined,
  }
}
