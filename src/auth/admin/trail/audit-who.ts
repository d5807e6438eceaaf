import { sql } from 'kysely'
import type { RecordFilter } from '../../../audit/index.ts'
import type { Store } from '../../../store/index.ts'
import { findKnownAccounts } from '../../users/known.ts'
import { USER_OPERATIONS } from '../accounts/user-operations.ts'
import { CLIENT_OPERATIONS } from '../apps/clients.ts'
import {
  findAccountIds,
  findAccounts,
  findApps,
  findByFhirUser,
  isFhirUser,
  type Named,
} from '../base/find-named.ts'

type Actor = NonNullable<RecordFilter['actor']>

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
