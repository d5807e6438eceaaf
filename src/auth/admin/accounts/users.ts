import { setImmediate as yieldTurn } from 'node:timers/promises'
import { type Kysely, type Selectable, sql } from 'kysely'
import type { Schema, Store } from '../../../store/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { formatFhirUser, isPatientUser, opensRecords } from '../../base/user.ts'
import { findActivationEnds } from '../../users/activation.ts'
import { findAdminProvider, keepGoodLogins, type LoginRow, selectLogins } from '../../users/find-login.ts'
import { findLocked } from '../../users/guesses.ts'
import { NO_PASSWORD } from '../../users/passwords.ts'
import type { AccessRules } from '../../users/validity/rule.ts'
import { type Admin, cutPage, type ListPage, type PageRequest } from '../base/action.ts'
import { listConditions, type Wanted } from '../subject/filters.ts'
import { type PlainValues, readPlainValues, type UserKind } from './user-fields.ts'
import { USER_FILTERS } from './user-filters.ts'

/** Which user an operation is about. With a kind, users of the other kind do not exist. */
export type UserTarget = ({ readonly id: string } | { readonly username: string }) & {
  readonly kind?: UserKind
}

/** An auditor is never an administrator. */
export interface UserDescription extends PlainValues {
  readonly id: string
  readonly kind: UserKind
  readonly username: string
  /** `Practitioner/1`; empty for an account that opens no records. */
  readonly fhirUser: string
  /** False for an account without a FHIR user: it opens no records (LOGIN-19). */
  readonly records: boolean
  /** The ids of the RelatedPersons as which an account acts for patients. */
  readonly relatedPersons: readonly string[]
  /** The identity providers that name the user an administrator, in current sign-ins. */
  readonly adminProviders: readonly string[]
  /** Whether the account was made for loopback, and ends elsewhere. */
  readonly isForLoopback: boolean
  readonly hasPassword: boolean
  /** When the link ends with which the user can choose a password; undefined without one. */
  readonly activationEndsAt: number | undefined
  readonly links: readonly UserLink[]
  readonly secondFactors: number
  /** Browsers in which the user is signed in. */
  readonly signIns: number
  /** Undefined if the account is older than the record of it. */
  readonly createdAt: number | undefined
  /** The last sign-in; undefined if there was none since they are kept. */
  readonly signedInAt: number | undefined
  /** Since when passwords are accepted only from known browsers and networks. */
  readonly lockedAt: number | undefined
}

/** A user of an identity provider who signs in as this user. */
export interface UserLink {
  readonly issuer: string
  readonly subject: string
  readonly provisioned: boolean
  readonly createdAt: number
}

export type UserRow = Selectable<Schema['clinician']>

export function findRow(db: Kysely<Schema>, target: UserTarget): Promise<UserRow | undefined> {
  return db
    .selectFrom('clinician')
    .selectAll()
    .$if('id' in target, query => query.where('id', '=', 'id' in target ? target.id : ''))
    .$if('username' in target, query =>
      query.where('username', '=', 'username' in target ? target.username : ''),
    )
    .$if(target.kind !== undefined, query => query.where(isOfKind(target.kind ?? 'clinician')))
    .executeTakeFirst()
}

function isOfKind(kind: UserKind) {
  const isAccount = sql`(fhir_user_id like 'Patient/%' or fhir_user_id like 'RelatedPerson/%')`
  return kind === 'account' ? sql<boolean>`${isAccount}` : sql<boolean>`not ${isAccount}`
}

function getKind({ fhir_user_id }: UserRow): UserKind {
  return isPatientUser({ fhirUserId: fhir_user_id }) ? 'account' : 'clinician'
}

export async function findUser(
  { store, clock, rules }: Pick<Admin, 'store' | 'clock' | 'rules'>,
  target: UserTarget,
): Promise<UserDescription | undefined> {
  const row = await findRow(store.db, target)
  return row && describe(store.db, rules, row, clock())
}

export interface UserFilter extends Wanted<typeof USER_FILTERS> {
  readonly kind?: UserKind | undefined
}

/** Lists users by username. A page may have fewer than `limit`, and others may follow. */
export async function listUsers(
  { store, clock, rules }: Pick<Admin, 'store' | 'clock' | 'rules'>,
  filter: UserFilter & PageRequest,
): Promise<ListPage<UserDescription>> {
  const rows: UserRow[] = []
  let { after } = filter
  do {
    const end = await findEnd(store, after)
    const wanted = { ...filter, after, limit: filter.limit + 1 - rows.length }
    rows.push(...(await findRows({ store, clock, rules }, wanted, end)))
    after = end
    await yieldTurn()
  } while (after !== undefined && rows.length <= filter.limit)
  const page = cutPage(rows, filter, row => row.username)
  const users = await describeAll(store.db, rules, page.items, clock())
  const { admin } = filter
  return { ...page, items: users.filter(user => admin === undefined || isAdministrator(user) === admin) }
}

/** SQLite compares users with a filter on the thread of the servers, which must not wait for more than a few ms. */
const COMPARED_AT_ONCE = 4_000

/** The username up to which users are compared at once; undefined if there are no others. */
async function findEnd({ db, dialect }: Store, after = ''): Promise<string | undefined> {
  if (dialect === 'postgres') return undefined
  const end = await db
    .selectFrom('clinician')
    .select('username')
    .where('username', '>', after)
    .orderBy('username')
    .offset(COMPARED_AT_ONCE - 1)
    .limit(1)
    .executeTakeFirst()
  return end?.username
}

type Context = Pick<Admin, 'store' | 'clock' | 'rules'>

/** The first users that meet the filter, up to the username `end`. */
function findRows(
  context: Context,
  filter: UserFilter & PageRequest,
  end: string | undefined,
): Promise<UserRow[]> {
  const { after, limit } = filter
  return selectWanted(context, filter)
    .selectAll()
    .$if(after !== undefined, query => query.where('username', '>', after ?? ''))
    .$if(end !== undefined, query => query.where('username', '<=', end ?? ''))
    .orderBy('username')
    .limit(limit)
    .execute()
}

/** How many users meet the filter. */
export async function countUsers(context: Context, filter: UserFilter): Promise<number> {
  if (filter.admin !== undefined) return countListed(context, filter)
  const { count } = await selectWanted(context, filter)
    .select(({ fn }) => fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Whether a user is an administrator also depends on sign-ins. */
async function countListed(context: Context, filter: UserFilter): Promise<number> {
  let count = 0
  let after: string | undefined
  do {
    const { items, next } = await listUsers(context, { ...filter, after, limit: LIMITS.adminPage })
    count += items.length
    after = next
  } while (after !== undefined)
  return count
}

function selectWanted(context: Context, { kind, ...wanted }: UserFilter) {
  return context.store.db
    .selectFrom('clinician')
    .$if(kind !== undefined, query => query.where(isOfKind(kind ?? 'clinician')))
    .where(({ and }) => and(listConditions(USER_FILTERS, wanted, context)))
}

/** Whether the user is an administrator now, by the account or by a sign-in. */
export function isAdministrator({ admin, adminProviders }: UserDescription): boolean {
  return admin || adminProviders.length > 0
}

export async function describe(
  db: Kysely<Schema>,
  rules: AccessRules,
  row: UserRow,
  now: number,
): Promise<UserDescription> {
  const [user] = await describeAll(db, rules, [row], now)
  if (!user) throw new Error('Cannot describe the user')
  return user
}

async function describeAll(
  db: Kysely<Schema>,
  rules: AccessRules,
  rows: readonly UserRow[],
  now: number,
): Promise<readonly UserDescription[]> {
  const ids = rows.map(({ id }) => id)
  if (ids.length === 0) return []
  const links = await db
    .selectFrom('clinician_link')
    .selectAll()
    .where('clinician_id', 'in', ids)
    .orderBy('created_at')
    .execute()
  const related = await db
    .selectFrom('account_related_person')
    .selectAll()
    .where('clinician_id', 'in', ids)
    .orderBy('related_person_id')
    .execute()
  const factors = await db
    .selectFrom('factor')
    .select('clinician_id')
    .where('clinician_id', 'in', ids)
    .execute()
  const logins = await selectLogins(db).where('login.clinician_id', 'in', ids).execute()
  const signIns = await keepGoodLogins(db, rules, logins, now)
  const locked = await findLocked(db, ids)
  const activationEnds = await findActivationEnds(db, rows, now)
  return rows.map(row => ({
    id: row.id,
    kind: getKind(row),
    username: row.username,
    ...readPlainValues(row),
    fhirUser: formatFhirUser(row.fhir_user_id),
    records: opensRecords({ fhirUserId: row.fhir_user_id }),
    relatedPersons: related.filter(one => one.clinician_id === row.id).map(one => one.related_person_id),
    auditor: Boolean(row.auditor) && !row.admin,
    adminProviders: listAdminProviders(signIns, row, rules),
    isForLoopback: Boolean(row.for_loopback),
    hasPassword: row.password_hash !== NO_PASSWORD,
    activationEndsAt: activationEnds.get(row.id),
    links: links.filter(link => link.clinician_id === row.id).map(toLink),
    secondFactors: factors.filter(one => one.clinician_id === row.id).length,
    signIns: signIns.filter(one => one.clinician_id === row.id).length,
    createdAt: row.created_at ?? undefined,
    signedInAt: row.signed_in_at ?? undefined,
    lockedAt: locked.get(row.id),
  }))
}

function listAdminProviders(
  signIns: readonly LoginRow[],
  { id }: UserRow,
  rules: AccessRules,
): readonly string[] {
  const own = signIns.filter(({ clinician_id }) => clinician_id === id)
  return [...new Set(own.flatMap(login => findAdminProvider(login, rules)?.id ?? []))]
}

function toLink(link: Selectable<Schema['clinician_link']>): UserLink {
  const { issuer, subject, provisioned, created_at } = link
  return { issuer, subject, provisioned: Boolean(provisioned), createdAt: created_at }
}
