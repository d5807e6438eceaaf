import type { Transaction } from 'kysely'
import { HOUR_MS, isFailure } from '../../../core/index.ts'
import { createRandomToken, type Schema } from '../../../store/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { type ActivationLink, createActivationLink, keepActivationLink } from '../../users/activation.ts'
import { removeFactors } from '../../users/factors/factors.ts'
import { forgetWrongProofs } from '../../users/factors/wrong-proofs.ts'
import { forgetWrongPasswords } from '../../users/guesses.ts'
import { hashPassword, NO_PASSWORD } from '../../users/passwords.ts'
import { forgetSenders } from '../../users/senders.ts'
import { keepAccess } from '../../users/validity/facts.ts'
import { computeAccountMark } from '../../users/validity/rule.ts'
import { type Admin, type AdminFailure, failAdmin } from '../base/action.ts'
import { checkLink, checkPassword, isIssued, type NewUser } from './check-user.ts'
import { performOnUser } from './perform-on-user.ts'
import type { UserDescription, UserLink, UserRow, UserTarget } from './users.ts'

/** A user, and a new password or link if the operation made one. Only its hash is stored, so show it now. */
export interface ChangedUser extends UserDescription {
  readonly password?: string
  readonly activationLink?: ActivationLink
}

export function makeLink(admin: Admin, trx: Transaction<Schema>, row: UserRow): Promise<ActivationLink> {
  const { clock, issuerUrl, activationLinkHours } = admin
  if (issuerUrl === undefined || activationLinkHours === undefined) throw new Error('Settings are missing')
  const expiresAt = clock() + activationLinkHours * HOUR_MS
  return createActivationLink(trx, row, { issuerUrl, expiresAt })
}

/** Sets a new password, or a random one, or makes a link, and returns it. Ends all sign-ins, and the access of apps. */
export async function setPassword(
  admin: Admin,
  target: UserTarget,
  {
    withLink = false,
    password: chosen,
    keepApps = false,
  }: Pick<NewUser, 'withLink' | 'password'> & { readonly keepApps?: boolean | undefined },
): Promise<ChangedUser | AdminFailure> {
  const fault = checkLink(admin, { withLink, password: chosen })
  if (fault) return fault
  const password = withLink ? undefined : (chosen ?? createPassword())
  const password_hash = password === undefined ? NO_PASSWORD : await hashPassword(password)
  let activationLink: ActivationLink | undefined
  const user = await performOnUser(admin, target, 'set-password', async (trx, row) => {
    const fault = checkPassword(admin, { username: row.username, displayName: row.display_name }, password)
    if (fault) return fault
    // With a password that only its owner knows, a sample account is one like others.
    const for_loopback = row.for_loopback && (admin.isForLoopback ?? false)
    await forgetWrongProofs(trx, row.id)
    await forgetWrongPasswords(trx, row.id)
    await forgetSenders(trx, row.id)
    const columns = {
      password_hash,
      must_change_password: !withLink && isIssued(admin),
      for_loopback,
      password_changed_at: admin.clock(),
      // The sign-ins end even if there was no password.
      access_version: row.access_version + 1,
    }
    const changed = await storeAndEnd(trx, row, columns, keepApps)
    if (withLink) activationLink = await makeLink(admin, trx, changed)
    return changed
  })
  if (isFailure(user)) return user
  return { ...user, ...(password !== undefined && { password }), ...(activationLink && { activationLink }) }
}

export function createPassword(): string {
  return createRandomToken().slice(0, 20)
}

/** Ends all sign-ins of a user, and the access of apps; `keepApps` keeps apps with `offline_access`. */
export function endSessions(
  admin: Admin,
  target: UserTarget,
  { keepApps = false }: { readonly keepApps?: boolean | undefined } = {},
): Promise<UserDescription | AdminFailure> {
  return performOnUser(admin, target, 'end-sessions', (trx, row) =>
    storeAndEnd(trx, row, { access_version: row.access_version + 1 }, keepApps),
  )
}

/** Ends one sign-in of a user. */
export function endSignIn(
  admin: Admin,
  target: UserTarget,
  id: string,
): Promise<UserDescription | AdminFailure> {
  return performOnUser(admin, target, 'end-sign-in', async (trx, row) => {
    const { numDeletedRows } = await trx
      .deleteFrom('login')
      .where('clinician_id', '=', row.id)
      .where('id_hash', '=', id)
      .executeTakeFirst()
    return numDeletedRows === 0n ? failAdmin('sign-in-unknown') : row
  })
}

/** Removes all second factors of a user. Ends all sign-ins, and the access of apps. */
export function resetSecondFactor(
  admin: Admin,
  target: UserTarget,
  { keepApps = false }: { readonly keepApps?: boolean | undefined },
): Promise<UserDescription | AdminFailure> {
  return performOnUser(admin, target, 'reset-second-factor', async (trx, row, before) => {
    if (before.secondFactors === 0) return failAdmin('no-second-factor')
    await removeFactors(trx, row.id)
    await forgetWrongProofs(trx, row.id)
    return storeAndEnd(trx, row, { access_version: row.access_version + 1 }, keepApps)
  })
}

/** Forgets the wrong passwords of a user, so that a password is accepted from everywhere again. */
export function unlockUser(admin: Admin, target: UserTarget): Promise<UserDescription | AdminFailure> {
  return performOnUser(admin, target, 'unlock', async (trx, row, { lockedAt }) => {
    if (lockedAt === undefined) return failAdmin('account-not-locked')
    await forgetWrongPasswords(trx, row.id)
    return row
  })
}

/** Stores columns whose change ends all logins and grants of the user. */
async function storeAndEnd(
  trx: Transaction<Schema>,
  row: UserRow,
  columns: Partial<
    Pick<
      UserRow,
      'password_hash' | 'must_change_password' | 'access_version' | 'for_loopback' | 'password_changed_at'
    >
  >,
  keepApps: boolean,
): Promise<UserRow> {
  await trx.updateTable('clinician').set(columns).where('id', '=', row.id).execute()
  const kept = { accountId: row.id, mark: computeAccountMark(row), what: 'offline' } as const
  if (keepApps) await keepAccess(trx, kept)
  const changed = { ...row, ...columns }
  if (columns.password_hash === undefined) await keepActivationLink(trx, row, changed)
  return changed
}

/** Links a user of an identity provider, who then signs in as this user. Replaces a link to another user (SIGNIN-6). */
export async function linkUser(
  admin: Admin,
  target: UserTarget,
  { issuer, subject }: Pick<UserLink, 'issuer' | 'subject'>,
): Promise<UserDescription | AdminFailure> {
  if (![issuer, subject].every(text => text !== '' && text.length <= LIMITS.urlCharacters))
    return failAdmin('identity-malformed', { longest: LIMITS.urlCharacters })
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
    if (numDeletedRows === 0n) return failAdmin('link-unknown')
    return row
  })
}
