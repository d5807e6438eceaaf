import { sql } from 'kysely'
import type { RecordFilter } from '../../../audit/index.ts'
import type { Store } from '../../../store/index.ts'
import { type Fault, makeFault } from '../../base/fault.ts'
import { findKnownAccounts } from '../../users/known.ts'
import type { Admin } from '../base/action.ts'
import { findAccountIds, findApps, isFhirUser } from '../base/find-named.ts'
import type { Found } from '../subject/filters.ts'

type Actor = NonNullable<RecordFilter['actor']>
type Finder = Pick<Admin, 'store'>

/** Nobody has this name. Records may contain it all the same. */
function nameNobody(name: string, isKnown: boolean): Fault | undefined {
  return isKnown ? undefined : makeFault('nobody-known', { name })
}

/** Finds the apps that a text means. */
export async function findClients({ store }: Finder, text: string): Promise<Found<readonly string[]>> {
  const apps = await findApps(store, text)
  return { found: [...new Set([text, ...apps])], unknown: nameNobody(text, apps.length > 0) }
}

/** Commands that are compared. */
const COMPARED = 2_000

/**
 * Finds whom a text means: a username, a name, the id of an account, a FHIR user, or who ran commands (`root@ward-3`); also
 * accounts that were removed. An account is found by its id, so that accounts of one FHIR user are told apart.
 */
export async function findActor({ store }: Finder, text: string): Promise<Found<Actor>> {
  const accounts = await findAccountIds(store, text)
  if (isFhirUser(text))
    return { found: { fhirUsers: [text] }, unknown: nameNobody(text, accounts.length > 0) }
  const operators = await findOperators(store, text)
  return {
    found: { subjects: [...new Set([text, ...accounts])], operators },
    unknown: nameNobody(text, accounts.length > 0 || operators.length > 0),
  }
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
export async function findTarget({ store }: Finder, text: string): Promise<Found<Target>> {
  const [, kind, rest] = /^(account|app|grant)\/(.+)$/s.exec(text) ?? []
  const name = rest ?? text
  const isOf = (one: string) => kind === undefined || kind === one
  const accounts = isOf('account') ? await findAccountIds(store, name) : []
  const apps = isOf('app') ? await findApps(store, name) : []
  const clients = isOf('app') ? [...new Set([name, ...apps])] : []
  const usernames = [...(await findKnownAccounts(store.db, accounts)).values()].map(it => it.username)
  const isKnown = accounts.length > 0 || apps.length > 0 || (await isGrant(store, name))
  return {
    found: {
      accounts,
      clients,
      grants: isOf('grant') ? [name] : [],
      requests: [
        ...usernames.flatMap(username => listRequests(['clinician', 'account'], USER_VERBS, username)),
        ...clients.flatMap(id => listRequests(['client'], CLIENT_VERBS, id)),
      ],
    },
    unknown: nameNobody(text, isKnown),
  }
}

/** The operations that records of earlier versions name without a target. The lists are closed. */
const USER_VERBS = [
  'add',
  'set',
  'set-password',
  'end-sessions',
  'end-sign-in',
  'reset-second-factor',
  'unlock',
  'disable',
  'enable',
  'remove',
  'link',
  'unlink',
] as const
const CLIENT_VERBS = ['add', 'approve', 'set', 'rotate-secret', 'disable', 'enable', 'remove'] as const

function listRequests(nouns: readonly string[], verbs: readonly string[], name: string): readonly string[] {
  return nouns.flatMap(noun => verbs.map(verb => `${noun} ${verb} ${name}`))
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
