import { type Kysely, sql } from 'kysely'
import type { RecordFilter } from '../../audit/index.ts'
import { containsText, type Schema, type Store } from '../../store/index.ts'
import { findKnownAccounts } from '../users/known.ts'
import { CLIENT_OPERATIONS } from './clients.ts'
import { USER_OPERATIONS } from './user-operations.ts'

type Actor = NonNullable<RecordFilter['actor']>

/** Whom a text of a filter names. */
interface Named<Filter> {
  readonly filter: Filter
  /** No account, app or operator has this name. The filter then finds only records that contain the text itself. */
  readonly isUnknown: boolean
}

/** Accounts or apps that one text may name. */
const MANY = 50

/** Commands that are compared. */
const COMPARED = 2_000

/**
 * Finds whom a text means: a username, a name, the id of an account, a FHIR user, or who ran commands (`root@ward-3`); also
 * accounts that were removed. An account is found by its id, so that accounts of one FHIR user are told apart.
 */
export async function findActor(store: Store, text: string): Promise<Named<Actor>> {
  if (isFhirUser(text)) return nameFhirUser(store, text)
  const accounts = await findAccounts(store.db, text)
  const operators = await findOperators(store, text)
  return {
    filter: { subjects: [...new Set([text, ...accounts])], operators },
    isUnknown: accounts.length === 0 && operators.length === 0,
  }
}

async function nameFhirUser({ db }: Store, text: string): Promise<Named<Actor>> {
  const accounts = await findByFhirUser(db, text)
  return { filter: { fhirUsers: [text] }, isUnknown: accounts.length === 0 }
}

async function findByFhirUser(db: Kysely<Schema>, text: string): Promise<readonly string[]> {
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

function isFhirUser(text: string): boolean {
  return /^[A-Z][A-Za-z]+\/./.test(text)
}

/** An account by its exact name or id, even a removed one; otherwise those whose name contains the text. */
async function findAccounts(db: Kysely<Schema>, text: string): Promise<readonly string[]> {
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

/** `root@ward-3`, or `root` on any host. */
async function findOperators({ trail }: Store, text: string): Promise<readonly string[]> {
  const db = await trail.read()
  const commands = sql<{
    method: string | null
    address: string | null
  }>`(select method, address from audit_event
    where kind <> 'fhir' and kind = 'admin' order by at desc, id desc limit ${COMPARED})`
  const rows = await db
    .selectFrom(commands.as('command'))
    .select('address')
    .distinct()
    .where('method', '=', 'sallyport')
    .execute()
  return rows
    .flatMap(({ address }) => address ?? [])
    .filter(
      operator =>
        operator === text ||
        operator
          .split(/@| as /)
          .slice(0, -1)
          .includes(text),
    )
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

type Target = NonNullable<RecordFilter['target']>

/**
 * Finds what a text means that somebody changed: an account, an app, or the id of a grant. `account/ada`, `app/growth` and
 * `grant/<id>` mean one kind only.
 */
export async function findTarget(store: Store, text: string): Promise<Named<Target>> {
  const [, kind, rest] = /^(account|app|grant)\/(.+)$/s.exec(text) ?? []
  const name = rest ?? text
  const isOf = (one: string) => kind === undefined || kind === one
  const accounts = isOf('account') ? await findAccountIds(store, name) : []
  const apps = isOf('app') ? await findApps(store, name) : undefined
  const usernames = [...(await findKnownAccounts(store.db, accounts)).values()].map(it => it.username)
  const clients = apps?.filter ?? []
  return {
    filter: {
      accounts,
      clients,
      grants: isOf('grant') ? [name] : [],
      requests: [
        ...usernames.flatMap(username =>
          (['clinician', 'account'] as const).flatMap(noun => listRequests(noun, USER_OPERATIONS, username)),
        ),
        ...clients.flatMap(id => listRequests('client', CLIENT_OPERATIONS, id)),
      ],
    },
    isUnknown: accounts.length === 0 && (apps?.isUnknown ?? true) && !(await isGrant(store, name)),
  }
}

/** How records of earlier versions name the operations on an account or an app. */
function listRequests(noun: string, operations: object, name: string): readonly string[] {
  return Object.keys(operations).map(verb => `${noun} ${verb} ${name}`)
}

async function isGrant({ trail }: Store, id: string): Promise<boolean> {
  const db = await trail.read()
  const record = db.selectFrom('audit_event').select('id').where('launch_id', '=', id).limit(1)
  return (await record.executeTakeFirst()) !== undefined
}

/** The usernames of the accounts, by their ids. */
export async function findUsernames(
  { db }: Store,
  records: readonly { readonly subject: string | null }[],
): Promise<ReadonlyMap<string, string>> {
  const accounts = await findKnownAccounts(
    db,
    records.map(({ subject }) => subject),
  )
  return new Map([...accounts].map(([id, { username }]) => [id, username]))
}
