import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import { isId } from '../../fhir/index.ts'
import { createRandomToken, type Schema } from '../../store/index.ts'
import { formatFhirUser, isPatientUser } from '../clinician/clinician.ts'
import { findNewPasswordFault, hashPassword, NO_PASSWORD } from '../clinician/password.ts'
import { LIMITS } from '../limits.ts'
import { endAccess } from '../login/login.ts'
import {
  type Admin,
  AdminFailure,
  compare,
  containsText,
  cutPage,
  type ListPage,
  type PageRequest,
  type Properties,
  perform,
  requireRecentLogin,
} from './act.ts'

/** A user of this server: a clinician, or the account of a patient or of related persons. */
export type UserKind = 'clinician' | 'account'

/** Which user an operation is about. With a kind, users of the other kind do not exist. */
export type UserTarget = ({ readonly id: string } | { readonly username: string }) & {
  readonly kind?: UserKind
}

export interface UserDescription {
  readonly id: string
  readonly kind: UserKind
  readonly username: string
  readonly displayName: string
  /** `Practitioner/1` */
  readonly fhirUser: string
  /** The ids of the RelatedPersons as which an account acts for patients. */
  readonly relatedPersons: readonly string[]
  readonly admin: boolean
  readonly disabled: boolean
  readonly hasPassword: boolean
  readonly links: readonly UserLink[]
  /** Browsers in which the user is signed in. */
  readonly signIns: number
}

/** A user of an identity provider who signs in as this user. */
export interface UserLink {
  readonly issuer: string
  readonly subject: string
  readonly provisioned: boolean
  readonly createdAt: number
}

export interface NewUser {
  readonly kind: UserKind
  readonly username: string
  readonly displayName: string
  /** `Practitioner/1` for a clinician; `Patient/1` or the first RelatedPerson for an account. */
  readonly fhirUser: string
  readonly relatedPersons?: readonly string[]
  readonly admin?: boolean
  /** Undefined: the user signs in with an identity provider. */
  readonly password?: string | undefined
}

type Row = Selectable<Schema['clinician']>

export function isUsername(text: string): boolean {
  return /^[^\s\p{Cc}](?:[^\p{Cc}]{0,98}[^\s\p{Cc}])?$/u.test(text)
}

/** Adds a user. */
export async function addUser(admin: Admin, user: NewUser): Promise<UserDescription | AdminFailure> {
  const fault =
    findUserFault(user) ??
    checkPassword(admin, user.password) ??
    (user.admin ? requireRecentLogin(admin) : undefined)
  if (fault) return fault
  const password_hash = user.password === undefined ? NO_PASSWORD : await hashPassword(user.password)
  return perform(admin, async trx => {
    const row = await trx
      .insertInto('clinician')
      .values({
        username: user.username,
        display_name: user.displayName,
        fhir_user_id: toColumn(user.fhirUser),
        admin: user.admin ?? false,
        password_hash,
      })
      .onConflict(conflict => conflict.column('username').doNothing())
      .returningAll()
      .executeTakeFirst()
    if (!row) return new AdminFailure('conflict', 'the username is taken')
    await storeRelatedPersons(trx, row.id, user.relatedPersons ?? [])
    const result = await describe(trx, row, admin.clock())
    return { act: `${user.kind} add ${user.username}`, result, after: toProperties(result) }
  })
}

/** The command line warns about a short password instead. */
function checkPassword({ actor }: Admin, password: string | undefined): AdminFailure | undefined {
  const fault =
    password === undefined || actor.kind === 'command' ? undefined : findNewPasswordFault(password)
  return fault === undefined ? undefined : new AdminFailure('invalid', fault)
}

/** The column has the bare id of a Practitioner (LOGIN-1). */
function toColumn(fhirUser: string): string {
  return fhirUser.replace(/^Practitioner\//, '')
}

const FHIR_USERS = { clinician: ['Practitioner'], account: ['Patient', 'RelatedPerson'] } as const

function findUserFault(
  user: Pick<NewUser, 'kind' | 'username' | 'displayName' | 'fhirUser' | 'relatedPersons' | 'admin'>,
): AdminFailure | undefined {
  const fail = (reason: string) => new AdminFailure('invalid', reason)
  const [type = '', id = ''] = user.fhirUser.split('/')
  const types: readonly string[] = FHIR_USERS[user.kind]
  if (!isUsername(user.username))
    return fail('a username has at most 100 characters without leading or trailing spaces')
  if (
    user.displayName === '' ||
    user.displayName.length > LIMITS.nameCharacters ||
    /\p{Cc}/u.test(user.displayName)
  )
    return fail(`a display name has 1 to ${LIMITS.nameCharacters} characters`)
  if (!types.includes(type) || !isId(id) || user.fhirUser.split('/').length !== 2)
    return fail(`a FHIR user of this kind is a reference to a ${types.join(' or ')}`)
  if (!(user.relatedPersons ?? []).every(isId)) return fail('the id of a RelatedPerson is not valid')
  if (user.admin && user.kind === 'account') return fail('only a clinician can be an administrator')
  return undefined
}

async function storeRelatedPersons(
  trx: Transaction<Schema>,
  userId: string,
  ids: readonly string[],
): Promise<void> {
  await trx.deleteFrom('account_related_person').where('clinician_id', '=', userId).execute()
  for (const id of new Set(ids))
    await trx
      .insertInto('account_related_person')
      .values({ clinician_id: userId, related_person_id: id })
      .execute()
}

export type UserChanges = Partial<
  Pick<NewUser, 'displayName' | 'fhirUser' | 'relatedPersons' | 'admin'> & { readonly disabled: boolean }
>

/**
 * Changes a user. To disable one ends all sign-ins and the access of apps. The last administrator may give up the right:
 * the command line can restore it.
 */
export function changeUser(
  admin: Admin,
  target: UserTarget,
  changes: UserChanges,
): Promise<UserDescription | AdminFailure> {
  return onUser(admin, target, chooseVerb(changes), async (trx, row, before) => {
    const wanted = { ...before, ...dropUndefined(changes) }
    const fault =
      findUserFault(wanted) ?? (isAboutAdministrator(before, wanted) ? requireRecentLogin(admin) : undefined)
    if (fault) return fault
    const columns = {
      display_name: wanted.displayName,
      fhir_user_id: toColumn(wanted.fhirUser),
      admin: wanted.admin,
      disabled: wanted.disabled,
    }
    await trx.updateTable('clinician').set(columns).where('id', '=', row.id).execute()
    if (changes.relatedPersons) await storeRelatedPersons(trx, row.id, changes.relatedPersons)
    if (changes.disabled) await endAccess(trx, row.id, { now: admin.clock(), keepOffline: false })
    return { ...row, ...columns }
  })
}

function chooseVerb({ disabled, ...others }: UserChanges): string {
  if (disabled === undefined || Object.values(others).some(value => value !== undefined)) return 'set'
  return disabled ? 'disable' : 'enable'
}

function dropUndefined<T extends object>(changes: T): T {
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined)) as T
}

/** Whether a change concerns an administrator (ADMIN-4). */
function isAboutAdministrator(before: UserDescription, wanted: UserDescription): boolean {
  return before.admin || wanted.admin
}

/** Sets a new password, or a random one, and returns it. Ends all sign-ins, and the access of apps. */
export async function setPassword(
  admin: Admin,
  target: UserTarget,
  {
    password = createRandomToken().slice(0, 20),
    keepApps = false,
  }: { password?: string | undefined; keepApps?: boolean },
): Promise<{ readonly user: UserDescription; readonly password: string } | AdminFailure> {
  const fault = checkPassword(admin, password) ?? requireRecentLogin(admin)
  if (fault) return fault
  const password_hash = await hashPassword(password)
  const user = await onUser(admin, target, 'set-password', async (trx, row) => {
    await trx.updateTable('clinician').set({ password_hash }).where('id', '=', row.id).execute()
    await endAccess(trx, row.id, { now: admin.clock(), keepOffline: keepApps })
    return { ...row, password_hash }
  })
  return user instanceof AdminFailure ? user : { user, password }
}

/** Ends all sign-ins of a user, and the access of apps; `keepApps` keeps apps with `offline_access`. */
export function endSessions(
  admin: Admin,
  target: UserTarget,
  { keepApps = false }: { readonly keepApps?: boolean } = {},
): Promise<UserDescription | AdminFailure> {
  return onUser(admin, target, 'end-sessions', async (trx, row) => {
    await endAccess(trx, row.id, { now: admin.clock(), keepOffline: keepApps })
    return row
  })
}

/** Links a user of an identity provider, who then signs in as this user. A link of another user moves (SIGNIN-6). */
export async function linkUser(
  admin: Admin,
  target: UserTarget,
  { issuer, subject }: Pick<UserLink, 'issuer' | 'subject'>,
): Promise<UserDescription | AdminFailure> {
  const refusal = requireRecentLogin(admin)
  if (refusal) return refusal
  if (![issuer, subject].every(text => text !== '' && text.length <= LIMITS.urlCharacters))
    return new AdminFailure('invalid', `issuer and subject have 1 to ${LIMITS.urlCharacters} characters`)
  return onUser(admin, target, 'link', async (trx, row) => {
    const link = { clinician_id: row.id, provisioned: false, created_at: admin.clock() }
    await trx
      .insertInto('clinician_link')
      .values({ issuer, subject, ...link })
      .onConflict(conflict => conflict.columns(['issuer', 'subject']).doUpdateSet(link))
      .execute()
    return row
  })
}

export async function unlinkUser(
  admin: Admin,
  target: UserTarget,
  { issuer, subject }: Pick<UserLink, 'issuer' | 'subject'>,
): Promise<UserDescription | AdminFailure> {
  const refusal = requireRecentLogin(admin)
  if (refusal) return refusal
  return onUser(admin, target, 'unlink', async (trx, row) => {
    const { numDeletedRows } = await trx
      .deleteFrom('clinician_link')
      .where('clinician_id', '=', row.id)
      .where('issuer', '=', issuer)
      .where('subject', '=', subject)
      .executeTakeFirst()
    return numDeletedRows === 0n ? new AdminFailure('not_found', 'there is no such link') : row
  })
}

/** Performs an act on a user, and records the properties that changed. */
function onUser(
  admin: Admin,
  target: UserTarget,
  verb: string,
  change: (trx: Transaction<Schema>, row: Row, before: UserDescription) => Promise<Row | AdminFailure>,
): Promise<UserDescription | AdminFailure> {
  return perform(admin, async trx => {
    const row = await findRow(trx, target)
    if (!row) return failUnknown(target)
    const before = await describe(trx, row, admin.clock())
    const changed = await change(trx, row, before)
    if (changed instanceof AdminFailure) return changed
    const result = await describe(trx, changed, admin.clock())
    const isNewPassword = changed.password_hash !== row.password_hash
    const { before: old, after } = compare(toProperties(before), toProperties(result))
    return {
      act: `${before.kind} ${verb} ${row.username}`,
      result,
      before: old,
      after: { ...after, ...(isNewPassword && { password: 'replaced' }) },
    }
  })
}

function failUnknown({ kind = 'clinician', ...target }: UserTarget): AdminFailure {
  const name = 'username' in target ? target.username : target.id
  return new AdminFailure('not_found', `there is no ${kind} ${name}`)
}

function findRow(db: Kysely<Schema>, target: UserTarget): Promise<Row | undefined> {
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

function getKind({ fhir_user_id }: Row): UserKind {
  return isPatientUser({ fhirUserId: fhir_user_id }) ? 'account' : 'clinician'
}

export async function findUser(
  { store, clock }: Pick<Admin, 'store' | 'clock'>,
  target: UserTarget,
): Promise<UserDescription | undefined> {
  const row = await findRow(store.db, target)
  return row && describe(store.db, row, clock())
}

export interface UserFilter extends PageRequest {
  readonly kind?: UserKind | undefined
  /** Part of the username or the display name. */
  readonly text?: string | undefined
  readonly admin?: boolean | undefined
  readonly disabled?: boolean | undefined
}

/** Lists users by username. */
export async function listUsers(
  { store, clock }: Pick<Admin, 'store' | 'clock'>,
  filter: UserFilter,
): Promise<ListPage<UserDescription>> {
  const { kind, text, admin, disabled, after, limit } = filter
  const rows = await store.db
    .selectFrom('clinician')
    .selectAll()
    .$if(kind !== undefined, query => query.where(isOfKind(kind ?? 'clinician')))
    .$if(after !== undefined, query => query.where('username', '>', after ?? ''))
    .$if(admin !== undefined, query => query.where('admin', '=', admin ?? true))
    .$if(disabled !== undefined, query => query.where('disabled', '=', disabled ?? false))
    .$if(text !== undefined, query => query.where(containsText(['username', 'display_name'], text ?? '')))
    .orderBy('username')
    .limit(limit + 1)
    .execute()
  const page = cutPage(rows, filter, row => row.username)
  return { ...page, items: await describeAll(store.db, page.items, clock()) }
}

async function describe(db: Kysely<Schema>, row: Row, now: number): Promise<UserDescription> {
  const [user] = await describeAll(db, [row], now)
  if (!user) throw new Error('Cannot describe the user')
  return user
}

async function describeAll(
  db: Kysely<Schema>,
  rows: readonly Row[],
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
  const signIns = await db
    .selectFrom('login')
    .select(({ fn }) => ['clinician_id', fn.countAll().as('count')])
    .where('clinician_id', 'in', ids)
    .where('expires_at', '>', now)
    .groupBy('clinician_id')
    .execute()
  return rows.map(row => ({
    id: row.id,
    kind: getKind(row),
    username: row.username,
    displayName: row.display_name,
    fhirUser: formatFhirUser(row.fhir_user_id),
    relatedPersons: related.filter(one => one.clinician_id === row.id).map(one => one.related_person_id),
    admin: Boolean(row.admin),
    disabled: Boolean(row.disabled),
    hasPassword: row.password_hash !== NO_PASSWORD,
    links: links.filter(link => link.clinician_id === row.id).map(toLink),
    signIns: Number(signIns.find(one => one.clinician_id === row.id)?.count ?? 0),
  }))
}

function toLink(link: Selectable<Schema['clinician_link']>): UserLink {
  const { issuer, subject, provisioned, created_at } = link
  return { issuer, subject, provisioned: Boolean(provisioned), createdAt: created_at }
}

function toProperties({ id, kind, links, ...properties }: UserDescription): Properties {
  return { ...properties, links: links.map(({ issuer, subject }) => ({ issuer, subject })) }
}
