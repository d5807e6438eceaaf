import { type Kysely, sql } from 'kysely'
import { Type } from 'typebox'
import { containsText, type Schema, type Store } from '../../../store/index.ts'
import { makeFault } from '../../base/fault.ts'
import type { Admin } from './action.ts'

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

/** Finds the apps that a text means: an id or a name, also of apps that were removed. */
export async function findApps({ db }: Store, text: string): Promise<readonly string[]> {
  const ofTable = (table: 'client' | 'removed_client') => db.selectFrom(table).select('client_id').limit(MANY)
  const isExact = isNamed(['client_id', 'name'], text)
  const exact = [
    ...(await ofTable('client').where(isExact).execute()),
    ...(await ofTable('removed_client').where(isExact).execute()),
  ]
  const contains = containsText(['name'], text)
  const found = exact.length > 0 ? exact : await ofTable('client').where(contains).execute()
  return found.map(({ client_id }) => client_id)
}

type Finder = Pick<Admin, 'store' | 'actor'>

/** The filter by a user. A program names one by its id: it may end what it lists. */
export const USER_FILTER = {
  schema: Type.String(),
  about: 'The id of a clinician or an account.',
  name: 'user',
  label: 'User',
  names: 'user',
  async find({ store, actor }: Finder, name: string) {
    const found = actor.kind === 'client' ? [name] : await findAccountIds(store, name)
    return { found, unknown: found.length === 0 ? makeFault('user-not-known', { name }) : undefined }
  },
} as const

/** The filter by an app. A program names one by its id. */
export const APP_FILTER = {
  schema: Type.String(),
  about: 'The id of an app.',
  name: 'app',
  option: 'client',
  label: 'App',
  names: 'app',
  async find({ store, actor }: Finder, name: string) {
    const apps = actor.kind === 'client' ? [name] : await findApps(store, name)
    const unknown = apps.length === 0 ? makeFault('app-not-known', { name }) : undefined
    return { found: [...new Set([name, ...apps])], unknown }
  },
} as const
