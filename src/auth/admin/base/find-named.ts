import { type Kysely, sql } from 'kysely'
import { containsText, type Schema, type Store } from '../../../store/index.ts'
import { type Admin, type AdminFailure, failAdmin } from './action.ts'

/** Whom a text of a filter names. */
export interface Named<Filter> {
  readonly filter: Filter
  /** No account, app or operator has this name. The filter then finds only records that contain the text itself. */
  readonly isUnknown: boolean
}

/** Accounts or apps that one text may name. */
const MANY = 50

export async function findByFhirUser(db: Kysely<Schema>, text: string): Promise<readonly string[]> {
  const accounts = await db
    .selectFrom('clinician')
    .select('id')
    .where('fhir_user_id', 'in', [text, text.replace(/^Practitioner\//, '')])
    .limit(MANY)
    .execute()
  return accounts.map(({ id }) => id)
}

/** Finds the accounts that a text means: a username, a name, an id or a FHIR user. */
export function findAccountIds({ db }: Store, text: string): Promise<readonly string[]> {
  return isFhirUser(text) ? findByFhirUser(db, text) : findAccounts(db, text)
}

export function isFhirUser(text: string): boolean {
  return /^[A-Z][A-Za-z]+\/./.test(text)
}

/** An account by its exact name or id, even a removed one; otherwise those whose name contains the text. */
export async function findAccounts(db: Kysely<Schema>, text: string): Promise<readonly string[]> {
  const ofTable = (table: 'clinician' | 'removed_clinician') => db.selectFrom(table).select('id').limit(MANY)
  const isExact = isNamed(['id', 'username', 'display_name'], text)
  const exact = [
    ...(await ofTable('clinician').where(isExact).execute()),
    ...(await ofTable('removed_clinician').where(isExact).execute()),
  ]
  const contains = containsText(['username', 'display_name'], text)
  const found = exact.length > 0 ? exact : await ofTable('clinician').where(contains).execute()
  return found.map(({ id }) => id)
}

function isNamed(columns: readonly string[], text: string) {
  const conditions = columns.map(column => sql`lower(${sql.ref(column)}) = ${text.toLowerCase()}`)
  return sql<boolean>`(${sql.join(conditions, sql` or `)})`
}

/** The accounts that a filter names. A program names one by its id: it may end what it lists. */
export async function findWantedAccounts(
  { store, actor }: Pick<Admin, 'store' | 'actor'>,
  text: string | undefined,
): Promise<readonly string[] | undefined | AdminFailure> {
  if (text === undefined || actor.kind === 'client') return text === undefined ? undefined : [text]
  const ids = await findAccountIds(store, text)
  return ids.length > 0 ? ids : failAdmin('filter-unknown', { faults: `no user is known as ${text}` })
}

/** The apps that a filter names. A program names one by its id. */
export async function findWantedApps(
  { store, actor }: Pick<Admin, 'store' | 'actor'>,
  text: string | undefined,
): Promise<readonly string[] | undefined | AdminFailure> {
  if (text === undefined || actor.kind === 'client') return text === undefined ? undefined : [text]
  const { filter, isUnknown } = await findApps(store, text)
  return isUnknown ? failAdmin('filter-unknown', { faults: `no app is known as ${text}` }) : filter
}

/** Finds the apps that a text means: an id or a name, also of apps that were removed. */
export async function findApps({ db }: Store, text: string): Promise<Named<readonly string[]>> {
  const ofTable = (table: 'client' | 'removed_client') => db.selectFrom(table).select('client_id').limit(MANY)
  const isExact = isNamed(['client_id', 'name'], text)
  const exact = [
    ...(await ofTable('client').where(isExact).execute()),
    ...(await ofTable('removed_client').where(isExact).execute()),
  ]
  const found =
    exact.length > 0
      ? exact
      : await ofTable('client')
          .where(containsText(['name'], text))
          .execute()
  return {
    filter: [...new Set([text, ...found.map(({ client_id }) => client_id)])],
    isUnknown: found.length === 0,
  }
}
