import { sql, type Transaction } from 'kysely'
import { Members } from '../../../endpoint/index.ts'
import { revokeGrantTokens, type Schema } from '../../../store/index.ts'
import { hashPassword, NO_PASSWORD } from '../../users/passwords.ts'
import { type Admin, type AdminFailure, failAdmin, perform } from '../base/action.ts'
import { makeLink } from './change-sign-in.ts'
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
  type ChangedUser,
  failUnknown,
  lockRow,
  nameOperation,
  performOnUser,
  refuseOwnAccount,
  toProperties,
  type UserOperation,
  type UserOperations,
} from './perform-on-user.ts'
import { listGiven, toColumns, type UserChanges } from './user-fields.ts'
import { describe, isAdministrator, type UserDescription, type UserTarget } from './users.ts'

export const CHANGE_OPERATIONS = {
  add: { signIn: 'asks' },
  set: { signIn: 'asks' },
  'make-administrator': {
    recordedAs: 'set',
    signIn: 'asks',
    page: {
      title: name => `Make ${name} an administrator?`,
      text: 'Administrators use this area: they change apps, users and keys, and read the audit trail.',
      button: 'Make administrator',
      isDangerous: false,
    },
    link: { text: 'Make administrator', isOffered: user => user.kind === 'clinician' && !user.admin },
    perform: (admin, target, { records }) => changeUser(admin, target, { admin: true, records }),
  },
  'remove-administrator': {
    recordedAs: 'set',
    signIn: 'asks',
    page: {
      title: name => `Remove ${name} from the administrators?`,
      text: 'The user keeps the account. If no administrator is left, the command line can add one.',
      button: 'Remove administrator',
    },
    link: {
      text: 'Remove administrator',
      isOffered: user => user.kind === 'clinician' && user.admin && !user.isSelf,
    },
    perform: (admin, target) => changeUser(admin, target, { admin: false }),
  },
  'make-auditor': {
    recordedAs: 'set',
    signIn: 'asks',
    page: {
      title: name => `Make ${name} an auditor?`,
      text: 'Auditors see the lists of this area, and search, export and verify the audit trail. They change nothing. This role replaces that of an administrator.',
      button: 'Make auditor',
      isDangerous: false,
    },
    link: {
      text: 'Make auditor',
      isOffered: user => user.kind === 'clinician' && !user.auditor && !user.isSelf,
    },
    perform: (admin, target, { records }) => changeUser(admin, target, { auditor: true, records }),
  },
  'remove-auditor': {
    recordedAs: 'set',
    signIn: 'asks',
    page: {
      title: name => `Remove ${name} from the auditors?`,
      text: 'The user keeps the account, and can no longer see this area.',
      button: 'Remove auditor',
    },
    link: { text: 'Remove auditor', isOffered: user => user.auditor },
    perform: (admin, target) => changeUser(admin, target, { auditor: false }),
  },
  disable: {
    signIn: 'asks about administrators',
    page: {
      title: name => `Disable ${name}?`,
      text: 'The user cannot sign in. All sign-ins end, and apps lose the access that the user gave them.',
      button: 'Disable user',
      endsAccess: true,
    },
    link: { text: 'Disable', isOffered: user => !user.isSelf && !user.disabled },
    command: {
      done: 'Disabled',
      help: `
FHIR servers refuse the user's access tokens within 5 seconds. Once enabled, the user can sign in again, but apps do not get
their access back.`,
    },
    perform: (admin, target) => changeUser(admin, target, { disabled: true }),
  },
  enable: {
    signIn: 'asks',
    page: {
      title: name => `Enable ${name}?`,
      text: 'The user can sign in again. Apps do not get their access back.',
      button: 'Enable user',
      isDangerous: false,
    },
    link: { text: 'Enable', isOffered: user => !user.isSelf && user.disabled },
    command: { done: 'Enabled' },
    perform: (admin, target) => changeUser(admin, target, { disabled: false }),
  },
  remove: {
    signIn: 'asks about administrators',
    api: {
      method: 'DELETE',
      path: '',
      title: 'Remove a user, all sign-ins and the access of apps',
      description: 'An identity provider that creates accounts creates it again at the next sign-in.',
      input: Members({}),
    },
    page: {
      title: name => `Remove ${name}?`,
      text: 'The account is deleted, all sign-ins end, and apps lose the access that the user gave them. This cannot be undone. Audit records stay. If an identity provider creates accounts, it creates this one again at the next sign-in: to keep the user out, disable the account.',
      button: 'Remove user',
      endsAccess: true,
    },
    link: { text: 'Remove', isOffered: user => !user.isSelf },
    command: {
      done: 'Removed',
      help: `
Deletes the account with its links, sign-ins and the access that the user gave apps. FHIR servers refuse the access tokens
within 5 seconds. Audit records stay. An identity provider that creates accounts creates it again at the next sign-in: to keep
the user out, disable the account.`,
    },
    perform: removeUser,
  },
} as const satisfies UserOperations<{ readonly records?: false }>

function operation(verb: keyof typeof CHANGE_OPERATIONS): UserOperation {
  return { verb, signIn: CHANGE_OPERATIONS[verb].signIn }
}

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
        ...toColumns(user),
        fhir_user_id: toColumn(user.fhirUser),
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
      operation: nameOperation(user.kind, operation('add')),
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
  return performOnUser(admin, target, operation(verb), async (trx, row, before) => {
    const wanted: UserDescription = {
      ...before,
      fhirUser: changes.records === false ? '' : before.fhirUser,
      records: changes.fhirUser === undefined ? before.records : true,
      ...listGiven(changes),
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
      ...toColumns(wanted),
      fhir_user_id: toColumn(wanted.fhirUser),
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
      operation: nameOperation(user.kind, operation('remove')),
      target: { type: 'account', id: row.id, name: row.username },
      isAboutAdministrator: isAdministrator(user),
      result: user,
      before: toProperties(user),
    }
  })
}
