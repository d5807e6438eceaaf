import { type Kysely, sql } from 'kysely'
import type { RecordFilter } from '../../audit/index.ts'
import { isRecord, parseJson } from '../../core/index.ts'
import { containsText, type Schema, type Store } from '../../store/index.ts'

type Actor = NonNullable<RecordFilter['actor']>

/** Whom a text of a filter names. */
interface Named<Filter> {
  readonly filter: Filter
  /** No account, app or operator has this name. The filter then finds only records that contain the text itself. */
  readonly isUnknown: boolean
}

/** Accounts, removed accounts or apps that one text may name. */
const MANY = 50

/** Removed accounts and commands that are compared. */
const COMPARED = 2_000

/**
 * Finds whom a text means: a username, a name, the id of an account, a FHIR user, or who ran commands (`root@ward-3`); also
 * accounts that were removed. An account is found by its id, so that accounts of one FHIR user are told apart.
 */
export async function findActor(store: Store, text: string): Promise<Named<Actor>> {
  if (isFhirUser(text)) return nameFhirUser(store, text)
  const accounts = await findAccounts(store.db, text)
  const found = [...accounts, ...(await findRemoved(store, text))]
  const operators = await findOperators(store, text)
  return {
    filter: {
      subjects: [...new Set([text, ...found.flatMap(({ id }) => id ?? [])])],
      fhirUsers: [...new Set(found.filter(({ id }) => id === undefined).map(({ fhirUser }) => fhirUser))],
      operators,
    },
    isUnknown: found.length === 0 && operators.length === 0,
  }
}

async function nameFhirUser({ db }: Store, text: string): Promise<Named<Actor>> {
  const accounts = await findByFhirUser(db, text)
  return { filter: { fhirUsers: [text] }, isUnknown: accounts.length === 0 }
}

function findByFhirUser(db: Kysely<Schema>, text: string) {
  return db
    .selectFrom('clinician')
    .select('id')
    .where('fhir_user_id', 'in', [text, text.replace(/^Practitioner\//, '')])
    .limit(MANY)
    .execute()
}

/** Finds the accounts that a text means: a username, a name, an id or a FHIR user. */
export async function findAccountIds({ db }: Store, text: string): Promise<readonly string[]> {
  const accounts = isFhirUser(text) ? await findByFhirUser(db, text) : await findAccounts(db, text)
  return accounts.flatMap(({ id }) => id ?? [])
}

function isFhirUser(text: string): boolean {
  return /^[A-Z][A-Za-z]+\/./.test(text)
}

interface Account {
  /** Undefined if the record of the removal has no id. */
  readonly id: string | undefined
  readonly fhirUser: string
}

async function findAccounts(db: Kysely<Schema>, text: string): Promise<readonly Account[]> {
  const select = db.selectFrom('clinician').select(['id', 'fhir_user_id as fhirUser']).limit(MANY)
  const exact = await select.where(isNamed(['id', 'username', 'display_name'], text)).execute()
  return exact.length > 0 ? exact : select.where(containsText(['username', 'display_name'], text)).execute()
}

function isNamed(columns: readonly string[], text: string) {
  const conditions = columns.map(column => sql`lower(${sql.ref(column)}) = ${text.toLowerCase()}`)
  return sql<boolean>`(${sql.join(conditions, sql` or `)})`
}

/** The record of a removal has the properties of the account. */
async function findRemoved({ trail }: Store, text: string): Promise<readonly Account[]> {
  const db = await trail.read()
  const removals = await db
    .selectFrom('audit_event')
    .select('details')
    .where(sql<boolean>`kind <> 'fhir' and kind = 'admin'`)
    .where(({ or, eb }) =>
      or(['clinician', 'account'].map(kind => eb('request', 'like', `${kind} remove %`))),
    )
    .orderBy('at', 'desc')
    .orderBy('id', 'desc')
    .limit(COMPARED)
    .execute()
  const accounts = removals.flatMap(({ details }) => {
    const { before } = (parseJson(details ?? '{}') ?? {}) as { readonly before?: unknown }
    return isRecord(before) ? [before] : []
  })
  const isMeant = (value: unknown) => typeof value === 'string' && value.toLowerCase() === text.toLowerCase()
  return accounts
    .filter(({ id, username, displayName }) => [id, username, displayName].some(isMeant))
    .slice(0, MANY)
    .map(({ id, fhirUser }) => ({
      id: typeof id === 'string' ? id : undefined,
      fhirUser: String(fhirUser),
    }))
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
  const select = db.selectFrom('client').select('client_id').limit(MANY)
  const exact = await select.where(isNamed(['client_id', 'name'], text)).execute()
  const found = exact.length > 0 ? exact : await select.where(containsText(['name'], text)).execute()
  return {
    filter: [...new Set([text, ...found.map(({ client_id }) => client_id)])],
    isUnknown: found.length === 0,
  }
}

/** The usernames of the accounts, by their ids. */
export async function findUsernames(
  { db }: Store,
  records: readonly { readonly subject: string | null }[],
): Promise<ReadonlyMap<string, string>> {
  const ids = [...new Set(records.flatMap(({ subject }) => subject ?? []))]
  if (ids.length === 0) return new Map()
  const rows = await db.selectFrom('clinician').select(['id', 'username']).where('id', 'in', ids).execute()
  return new Map(rows.map(({ id, username }) => [id, username]))
}
