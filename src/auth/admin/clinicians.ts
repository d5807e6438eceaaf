import type { Transaction } from 'kysely'
import { isFailure, isId } from '../../fhir/index.ts'
import { createRandomToken, type Schema } from '../../store/index.ts'
import { LIMITS } from '../base/limits.ts'
import { findNewPasswordFault, hashPassword, NO_PASSWORD } from '../users/accounts.ts'
import { keepAccess } from '../users/validity/facts.ts'
import { computeAccountMark } from '../users/validity/rule.ts'
import { type Admin, AdminFailure, compare, type Properties, perform } from './action.ts'
import {
  describe,
  findRow,
  type UserDescription,
  type UserKind,
  type UserLink,
  type UserRow,
  type UserTarget,
} from './users.ts'

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

export function isUsername(text: string): boolean {
  return /^[^\s\p{Cc}](?:[^\p{Cc}]{0,98}[^\s\p{Cc}])?$/u.test(text)
}

/** Adds a user. */
export async function addUser(admin: Admin, user: NewUser): Promise<UserDescription | AdminFailure> {
  const fault = findUserFault(user) ?? checkPassword(admin, user.password)
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
        for_loopback: admin.isForLoopback ?? false,
      })
      .onConflict(conflict => conflict.column('username').doNothing())
      .returningAll()
      .executeTakeFirst()
    if (!row) return new AdminFailure('conflict', 'the username is taken')
    await storeRelatedPersons(trx, row.id, user.relatedPersons ?? [])
    const result = await describe(trx, admin.rules, row, admin.clock())
    return {
      operation: `${user.kind} add`,
      target: user.username,
      result,
      after: toProperties(result),
    }
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
 * Changes a user. Disabling a user ends all sign-ins and the access of apps. The last administrator may give up the role:
 * the command line can restore it.
 */
export function changeUser(
  admin: Admin,
  target: UserTarget,
  changes: UserChanges,
): Promise<UserDescription | AdminFailure> {
  return performOnUser(admin, target, chooseVerb(changes), async (trx, row, before) => {
    const wanted = { ...before, ...dropUndefined(changes) }
    const fault = findUserFault(wanted)
    if (fault) return fault
    const columns = {
      display_name: wanted.displayName,
      fhir_user_id: toColumn(wanted.fhirUser),
      admin: wanted.admin,
      disabled: wanted.disabled,
      // Enabling a user again does not restore what ended.
      access_version: row.access_version + (wanted.disabled && !before.disabled ? 1 : 0),
    }
    await trx.updateTable('clinician').set(columns).where('id', '=', row.id).execute()
    if (changes.relatedPersons) await storeRelatedPersons(trx, row.id, changes.relatedPersons)
    // Also if an identity provider gave it.
    if (changes.admin === false) await takeRightFromLogins(trx, row.id)
    return { ...row, ...columns }
  })
}

async function takeRightFromLogins(trx: Transaction<Schema>, userId: string): Promise<void> {
  await trx.updateTable('login').set({ admin: false }).where('clinician_id', '=', userId).execute()
}

function chooseVerb({ disabled, ...others }: UserChanges): 'set' | 'enable' | 'disable' {
  if (disabled === undefined || Object.values(others).some(value => value !== undefined)) return 'set'
  return disabled ? 'disable' : 'enable'
}

function dropUndefined<T extends object>(changes: T): T {
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined)) as T
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
  const fault = checkPassword(admin, password)
  if (fault) return fault
  const password_hash = await hashPassword(password)
  const user = await performOnUser(admin, target, 'set-password', (trx, row) => {
    // With a password that only its owner knows, a sample account is one like others.
    const for_loopback = row.for_loopback && (admin.isForLoopback ?? false)
    return storeAndEnd(trx, row, { password_hash, for_loopback }, keepApps)
  })
  return isFailure(user) ? user : { user, password }
}

/** Ends all sign-ins of a user, and the access of apps; `keepApps` keeps apps with `offline_access`. */
export function endSessions(
  admin: Admin,
  target: UserTarget,
  { keepApps = false }: { readonly keepApps?: boolean } = {},
): Promise<UserDescription | AdminFailure> {
  return performOnUser(admin, target, 'end-sessions', (trx, row) =>
    storeAndEnd(trx, row, { access_version: row.access_version + 1 }, keepApps),
  )
}

/** Stores columns whose change ends all logins and grants of the user. */
async function storeAndEnd(
  trx: Transaction<Schema>,
  row: UserRow,
  columns: Partial<Pick<UserRow, 'password_hash' | 'access_version' | 'for_loopback'>>,
  keepApps: boolean,
): Promise<UserRow> {
  await trx.updateTable('clinician').set(columns).where('id', '=', row.id).execute()
  const kept = { accountId: row.id, mark: computeAccountMark(row), what: 'offline' } as const
  if (keepApps) await keepAccess(trx, kept)
  return { ...row, ...columns }
}

/** Links a user of an identity provider, who then signs in as this user. Replaces a link to another user (SIGNIN-6). */
export async function linkUser(
  admin: Admin,
  target: UserTarget,
  { issuer, subject }: Pick<UserLink, 'issuer' | 'subject'>,
): Promise<UserDescription | AdminFailure> {
  if (![issuer, subject].every(text => text !== '' && text.length <= LIMITS.urlCharacters))
    return new AdminFailure('invalid', `issuer and subject have 1 to ${LIMITS.urlCharacters} characters`)
  return performOnUser(admin, target, 'link', async (trx, row) => {
    const link = { clinician_id: row.id, provisioned: false, created_at: admin.clock() }
    await trx
      .insertInto('clinician_link')
      .values({ issuer, subject, ...link })
      .onConflict(conflict => conflict.columns(['issuer', 'subject']).doUpdateSet(link))
      .execute()
    return row
  })
}

/** Removes a link. The logins that it allowed end. */
export async function unlinkUser(
  admin: Admin,
  target: UserTarget,
  { issuer, subject }: Pick<UserLink, 'issuer' | 'subject'>,
): Promise<UserDescription | AdminFailure> {
  return performOnUser(admin, target, 'unlink', async (trx, row) => {
    const { numDeletedRows } = await trx
      .deleteFrom('clinician_link')
      .where('clinician_id', '=', row.id)
      .where('issuer', '=', issuer)
      .where('subject', '=', subject)
      .executeTakeFirst()
    if (numDeletedRows === 0n) return new AdminFailure('not_found', 'there is no such link')
    return row
  })
}

/** Performs an action on a user, and records the properties that changed. */
function performOnUser(
  admin: Admin,
  target: UserTarget,
  verb: 'set' | 'enable' | 'disable' | 'set-password' | 'end-sessions' | 'link' | 'unlink',
  change: (
    trx: Transaction<Schema>,
    row: UserRow,
    before: UserDescription,
  ) => Promise<UserRow | AdminFailure>,
): Promise<UserDescription | AdminFailure> {
  return perform(admin, async trx => {
    const row = await lockRow(trx, target)
    if (!row) return failUnknown(target)
    const before = await describe(trx, admin.rules, row, admin.clock())
    const changed = await change(trx, row, before)
    if (isFailure(changed)) return changed
    const result = await describe(trx, admin.rules, changed, admin.clock())
    const isNewPassword = changed.password_hash !== row.password_hash
    const { before: old, after } = compare(toProperties(before), toProperties(result))
    return {
      operation: `${before.kind} ${verb}`,
      target: row.username,
      isAboutAdministrator: before.admin,
      result,
      before: old,
      after: { ...after, ...(isNewPassword && { password: 'replaced' }) },
    }
  })
}

/** Finds a user and locks it, so that simultaneous changes follow each other. */
async function lockRow(trx: Transaction<Schema>, target: UserTarget): Promise<UserRow | undefined> {
  const found = await findRow(trx, target)
  return trx
    .updateTable('clinician')
    .set(({ ref }) => ({ display_name: ref('display_name') }))
    .where('id', '=', found?.id ?? '')
    .returningAll()
    .executeTakeFirst()
}

function failUnknown({ kind = 'clinician', ...target }: UserTarget): AdminFailure {
  const name = 'username' in target ? target.username : target.id
  return new AdminFailure('not_found', `there is no ${kind} ${name}`)
}

function toProperties({ id, kind, links, ...properties }: UserDescription): Properties {
  return { ...properties, links: links.map(({ issuer, subject }) => ({ issuer, subject })) }
}
