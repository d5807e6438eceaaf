import { sql, type Transaction } from 'kysely'
import { revokeGrantTokens, type Schema } from '../../../store/index.ts'
import { hashPassword, NO_PASSWORD } from '../../users/passwords.ts'
import { type Admin, type AdminFailure, failAdmin, perform } from '../base/action.ts'
import { type ChangedUser, makeLink } from './change-sign-in.ts'
import {
  checkLink,
  checkPassword,
  isIssued,
  listFaultsOfNew,
  listUserFaults,
  type NewUser,
  USERNAME_TAKEN,
} from './check-user.ts'
import {
  failUnknown,
  lockRow,
  nameOperation,
  performOnUser,
  refuseOwnAccount,
  toProperties,
} from './perform-on-user.ts'
import { describe, isAdministrator, type UserDescription, type UserTarget } from './users.ts'

export async function addUser(admin: Admin, user: NewUser): Promise<ChangedUser | AdminFailure> {
  const fault =
    listFaultsOfNew(user)[0] ?? checkPassword(admin, user, user.password) ?? checkLink(admin, user)
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
        auditor: user.auditor ?? false,
        password_hash,
        must_change_password: user.password !== undefined && isIssued(admin),
        for_loopback: admin.isForLoopback ?? false,
        created_at: admin.clock(),
      })
      .onConflict(conflict => conflict.column('username').doNothing())
      .returningAll()
      .executeTakeFirst()
    if (!row) return USERNAME_TAKEN
    await storeRelatedPersons(trx, row.id, user.relatedPersons ?? [])
    const activationLink = user.withLink ? await makeLink(admin, trx, row) : undefined
    const result = await describe(trx, admin.rules, row, admin.clock())
    return {
      operation: nameOperation(user.kind, 'add'),
      target: { type: 'account', id: row.id, name: user.username },
      result: { ...result, ...(activationLink && { activationLink }) },
      after: toProperties(result),
    }
  })
}

/** The column has the bare id of a Practitioner (LOGIN-1). */
function toColumn(fhirUser: string): string {
  return fhirUser.replace(/^Practitioner\//, '')
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

/** The properties that change. */
export interface UserChanges {
  readonly displayName?: string | undefined
  readonly fhirUser?: string | undefined
  /** False removes the FHIR user: the account opens no records. A new FHIR user undoes it. */
  readonly records?: boolean | undefined
  readonly relatedPersons?: readonly string[] | undefined
  readonly admin?: boolean | undefined
  readonly auditor?: boolean | undefined
  readonly disabled?: boolean | undefined
}

/**
 * Changes a user. Disabling a user ends all sign-ins and the access of apps. The last administrator may give up the role:
 * the command line can restore it.
 */
export function changeUser(
  admin: Admin,
  target: UserTarget,
  asked: UserChanges,
): Promise<UserDescription | AdminFailure> {
  const changes = replaceRole(asked)
  const verb = chooseVerb(changes)
  return performOnUser(admin, target, verb, async (trx, row, before) => {
    const wanted = {
      ...before,
      displayName: changes.displayName ?? before.displayName,
      fhirUser: changes.fhirUser ?? (changes.records === false ? '' : before.fhirUser),
      records: changes.records ?? (changes.fhirUser === undefined ? before.records : true),
      relatedPersons: changes.relatedPersons ?? before.relatedPersons,
      admin: changes.admin ?? before.admin,
      auditor: changes.auditor ?? before.auditor,
      disabled: changes.disabled ?? before.disabled,
    }
    const asOwn =
      changes.admin === false
        ? 'remove-administrator'
        : wanted.fhirUser === before.fhirUser
          ? verb
          : 'change-fhir-user'
    const fault = refuseOwnAccount(admin, row.id, asOwn) ?? listUserFaults(wanted)[0]
    if (fault) return fault
    const columns = {
      display_name: wanted.displayName,
      fhir_user_id: toColumn(wanted.fhirUser),
      admin: wanted.admin,
      auditor: wanted.auditor,
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

/** A user has one role: a new one ends the other. */
function replaceRole(changes: UserChanges): UserChanges {
  const { admin, auditor } = changes
  return {
    ...changes,
    ...(auditor && { admin: admin ?? false }),
    ...(admin && { auditor: auditor ?? false }),
  }
}

async function takeRightFromLogins(trx: Transaction<Schema>, userId: string): Promise<void> {
  await trx.updateTable('login').set({ admin: false }).where('clinician_id', '=', userId).execute()
}

function chooseVerb({ disabled, ...others }: UserChanges): 'set' | 'enable' | 'disable' {
  if (disabled === undefined || Object.values(others).some(value => value !== undefined)) return 'set'
  return disabled ? 'disable' : 'enable'
}

/** Grants of a user that are deleted in one transaction, during which others wait. */
const GRANTS_AT_ONCE = 1_000

/** Deletes a user. Access tokens that may still be valid are revoked. */
export function removeUser(admin: Admin, target: UserTarget): Promise<UserDescription | AdminFailure> {
  return perform(admin, async trx => {
    const row = await lockRow(trx, target)
    if (!row) return failUnknown(target)
    const own = refuseOwnAccount(admin, row.id, 'remove')
    if (own) return own
    const user = await describe(trx, admin.rules, row, admin.clock())
    const grants = trx.selectFrom('grant').select('id').where('clinician_id', '=', row.id)
    if (await grants.limit(1).offset(GRANTS_AT_ONCE).executeTakeFirst())
      return failAdmin('user-has-many-grants', { most: GRANTS_AT_ONCE })
    await revokeGrantTokens(trx, sql`clinician_id = ${row.id}`, admin.clock())
    await trx.deleteFrom('clinician').where('id', '=', row.id).execute()
    return {
      operation: nameOperation(user.kind, 'remove'),
      target: { type: 'account', id: row.id, name: row.username },
      isAboutAdministrator: isAdministrator(user),
      result: user,
      before: toProperties(user),
    }
  })
}
