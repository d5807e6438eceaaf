import { type Static, Type } from 'typebox'
import { Members } from '../../../endpoint/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { type Admin, type AdminFailure, failAdmin } from '../base/action.ts'
import { performOnUser, type UserOperation, type UserOperations } from './perform-on-user.ts'
import type { UserDescription, UserLink, UserTarget } from './users.ts'

/** A user of an identity provider. */
const Link = Members({ issuer: Type.String(), subject: Type.String() })

export const LINK_OPERATIONS = {
  link: {
    signIn: 'asks',
    api: {
      path: 'links',
      title: 'Link a user of an identity provider',
      description: 'Replaces a link of the same issuer and subject to another user.',
      input: Link,
    },
    page: {
      title: name => `Link ${name} to a provider account`,
      text: 'The account of the identity provider then signs in as this user. If it is linked to another user, that link is removed.',
      button: 'Link account',
      isDangerous: false,
    },
    perform: (admin, target, { issuer = '', subject = '' }) => linkUser(admin, target, { issuer, subject }),
  },
  unlink: {
    signIn: 'asks',
    api: { method: 'DELETE', path: 'links', title: 'Remove a link', input: Link },
    page: {
      title: name => `Remove a link of ${name}?`,
      text: 'The provider account can no longer sign in as this user, and its current sign-ins end.',
      button: 'Remove link',
    },
    perform: (admin, target, { issuer = '', subject = '' }) => unlinkUser(admin, target, { issuer, subject }),
  },
} as const satisfies UserOperations<Partial<Static<typeof Link>>>

function operation(verb: keyof typeof LINK_OPERATIONS): UserOperation {
  return { verb, signIn: LINK_OPERATIONS[verb].signIn }
}

/** Links a user of an identity provider, who then signs in as this user. Replaces a link to another user (SIGNIN-6). */
export async function linkUser(
  admin: Admin,
  target: UserTarget,
  { issuer, subject }: Pick<UserLink, 'issuer' | 'subject'>,
): Promise<UserDescription | AdminFailure> {
  if (![issuer, subject].every(text => text !== '' && text.length <= LIMITS.urlCharacters))
    return failAdmin('identity-malformed', { longest: LIMITS.urlCharacters })
  return performOnUser(admin, target, operation('link'), async (trx, row) => {
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
  return performOnUser(admin, target, operation('unlink'), async (trx, row) => {
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
