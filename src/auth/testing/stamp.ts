import type { Kysely } from 'kysely'
import type { Schema } from '../../store/index.ts'
import { keepGoodGrants, selectGrants } from '../oauth/grants/grant.ts'
import { keepGoodLogins, selectLogins } from '../users/find-login.ts'
import { computeAccountMark, computeClientMark, makeRules } from '../users/validity/rule.ts'
import { testSettings } from './settings.ts'

/** Gives logins and grants that a test stored as rows the marks that they would have. */
export async function stampRows(db: Kysely<Schema>): Promise<void> {
  for (const account of await db.selectFrom('clinician').selectAll().execute())
    for (const table of ['login', 'grant'] as const)
      await db
        .updateTable(table)
        .set({ account_mark: computeAccountMark(account) })
        .where('clinician_id', '=', account.id)
        .where('account_mark', '=', '')
        .execute()
  for (const client of await db.selectFrom('client').selectAll().execute())
    await db
      .updateTable('grant')
      .set({ client_mark: computeClientMark(client) })
      .where('client_id', '=', client.client_id)
      .where('client_mark', '=', '')
      .execute()
}

/** The ids of the logins and grants that are still good, by the default settings. */
export async function listGood(db: Kysely<Schema>): Promise<readonly string[]> {
  const rules = makeRules(testSettings, () => testSettings.login)
  const logins = await keepGoodLogins(db, rules, await selectLogins(db).execute(), Date.now())
  const grants = await keepGoodGrants(db, rules, await selectGrants(db).execute(), Date.now())
  return [...logins.map(({ id_hash }) => id_hash), ...grants.map(({ id }) => id)].toSorted()
}
