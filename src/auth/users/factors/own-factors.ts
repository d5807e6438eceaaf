import type { Transaction } from 'kysely'
import type { Schema } from '../../../store/index.ts'
import { type Fault, makeFault } from '../../base/fault.ts'
import { runTransaction } from '../../base/transaction.ts'
import { lockAccount } from '../accounts.ts'
import type { UsersContext } from '../context.ts'
import type { Login } from '../find-login.ts'
import { keepAccess } from '../validity/facts.ts'
import { computeAccountMark, needsSecondFactor } from '../validity/rule.ts'
import { type Factor, listFactors, removeFactors } from './factors.ts'

export const REQUIRED = makeFault('factor-required')

/** Whether a user who is signed in must keep a second factor. */
export function mustKeepFactor(
  { rules }: Pick<UsersContext, 'rules'>,
  { issuer, admin, auditor }: Login,
): boolean {
  return needsSecondFactor(rules, { issuer, evidence: undefined, admin, auditor })
}

/** Removes one's own second factor. All other sign-ins end, like after a new password. */
export function removeFactor(
  context: Pick<UsersContext, 'store' | 'rules'>,
  login: Login,
  factorId: string,
  record: (trx: Transaction<Schema>, factor: Factor) => Promise<void>,
): Promise<Factor | Fault> {
  return runTransaction(context.store.db, async trx => {
    const before = await lockAccount(trx, login.user.id)
    const factors = await listFactors(trx, login.user.id)
    const factor = factors.find(({ id }) => id === factorId)
    if (!before || !factor) return makeFault('factor-gone')
    if (factors.length > 1) await trx.deleteFrom('factor').where('id', '=', factorId).execute()
    else if (mustKeepFactor(context, login)) return REQUIRED
    else await removeFactors(trx, login.user.id)
    await endOtherSignIns(trx, login)
    await record(trx, factor)
    return factor
  })
}

/**
 * Ends all other sign-ins of a user whose second factors changed, with their apps: somebody else may be signed in there.
 * `keepsApps`: apps with `offline_access` keep their access.
 */
export async function endOtherSignIns(
  trx: Transaction<Schema>,
  { user, idHash }: Login,
  { keepsApps = false } = {},
): Promise<void> {
  const before = await lockAccount(trx, user.id)
  if (!before) return
  await trx
    .updateTable('clinician')
    .set({ access_version: before.access_version + 1 })
    .where('id', '=', user.id)
    .execute()
  const kept = { accountId: user.id, mark: computeAccountMark(before) }
  if (keepsApps) await keepAccess(trx, { ...kept, what: 'offline' })
  await keepAccess(trx, { ...kept, what: { loginIdHash: idHash } })
}

/** Renames one's own second factor. False if there is no such factor. */
export async function renameFactor(
  trx: Transaction<Schema>,
  { user }: Login,
  factorId: string,
  name: string,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('factor')
    .set({ name })
    .where('id', '=', factorId)
    .where('clinician_id', '=', user.id)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}
