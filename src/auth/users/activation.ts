import type { Kysely, Transaction } from 'kysely'
import { fail, isFailure } from '../../core/index.ts'
import { createRandomToken, type Schema, sha256 } from '../../store/index.ts'
import { paths } from '../base/paths.ts'
import { type Account, lockAccount } from './accounts.ts'
import type { UsersContext } from './context.ts'
import { computeAccountMark, isUsableAccount } from './validity/rule.ts'

/** A link with which a user chooses a password, once. */
export interface ActivationLink {
  readonly url: string
  readonly expiresAt: number
}

/**
 * Creates a link with 32 random bytes. Only their SHA-256 is stored. They follow the `#`, which browsers do not send: no log and
 * no Referer has them. The link replaces an earlier one, and ends with the mark of the account.
 */
export async function createActivationLink(
  trx: Transaction<Schema>,
  account: Account,
  { issuerUrl, expiresAt }: { readonly issuerUrl: string; readonly expiresAt: number },
): Promise<ActivationLink> {
  const token = createRandomToken()
  const link = {
    token_hash: sha256(token),
    account_mark: computeAccountMark(account),
    expires_at: expiresAt,
    used_at: null,
  }
  await trx
    .insertInto('activation_link')
    .values({ clinician_id: account.id, ...link })
    .onConflict(conflict => conflict.column('clinician_id').doUpdateSet(link))
    .execute()
  return { url: `${issuerUrl}${paths.loginActivate}#${token}`, expiresAt }
}

/** Keeps a link that is good after a change of the account that ends logins, but not the link. */
export async function keepActivationLink(
  trx: Transaction<Schema>,
  before: Account,
  after: Account,
): Promise<void> {
  await trx
    .updateTable('activation_link')
    .set({ account_mark: computeAccountMark(after) })
    .where('clinician_id', '=', before.id)
    .where('account_mark', '=', computeAccountMark(before))
    .execute()
}

/** When the links of accounts end, by account, if they are still good. */
export async function findActivationEnds(
  db: Kysely<Schema>,
  accounts: readonly Account[],
  now: number,
): Promise<ReadonlyMap<string, number>> {
  const links = await db
    .selectFrom('activation_link')
    .selectAll()
    .where(
      'clinician_id',
      'in',
      accounts.map(({ id }) => id),
    )
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .execute()
  const isGood = (link: (typeof links)[number]) =>
    accounts.some(one => one.id === link.clinician_id && computeAccountMark(one) === link.account_mark)
  return new Map(links.filter(isGood).map(link => [link.clinician_id, link.expires_at]))
}

/** Why a link does not work, and whose it is. */
export type EndedLink = ReturnType<typeof endLink>

function endLink(
  reason: 'unknown' | 'used' | 'expired' | 'the account changed' | 'passwords are off',
  account?: Account,
) {
  return fail({ reason, account })
}

type LinkContext = Pick<UsersContext, 'rules' | 'clock'>

/** The account of a link, which this does not consume: programs that scan messages follow links. */
export async function findActivation(
  { rules, clock }: LinkContext,
  db: Kysely<Schema>,
  token: string,
): Promise<Account | EndedLink> {
  const link = await db
    .selectFrom('activation_link')
    .selectAll()
    .where('token_hash', '=', sha256(token))
    .executeTakeFirst()
  const account =
    link &&
    (await db.selectFrom('clinician').selectAll().where('id', '=', link.clinician_id).executeTakeFirst())
  if (!link || !account) return endLink('unknown')
  if (link.used_at !== null) return endLink('used', account)
  if (link.expires_at <= clock()) return endLink('expired', account)
  if (link.account_mark !== computeAccountMark(account) || !isUsableAccount(account, rules))
    return endLink('the account changed', account)
  return rules.passwords ? account : endLink('passwords are off', account)
}

/** Consumes a link. The account is locked before, so that only one of several attempts finds the link good. */
export async function consumeActivation(
  context: LinkContext,
  trx: Transaction<Schema>,
  { id }: Account,
  token: string,
): Promise<Account | EndedLink> {
  await lockAccount(trx, id)
  const account = await findActivation(context, trx, token)
  if (isFailure(account)) return account
  await trx
    .updateTable('activation_link')
    .set({ used_at: context.clock() })
    .where('token_hash', '=', sha256(token))
    .execute()
  return account
}
