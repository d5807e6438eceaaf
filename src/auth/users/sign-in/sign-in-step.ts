import type { Kysely, Transaction } from 'kysely'
import type { Schema } from '../../../store/index.ts'
import type { AuthUser } from '../../base/user.ts'
import { type Account, lockAccount } from '../accounts.ts'
import type { UsersContext } from '../context.ts'
import { listFactors } from '../factors/factors.ts'
import { type AccessRules, computeAccountMark, isUsableAccount, needsSecondFactor } from '../validity/rule.ts'
import { consumePendingLogin, type FoundLogin, type PendingLogin } from './pending-login.ts'

/** What a user must do after the password. */
export type LoginStep = 'second-factor' | 'new-password' | 'enrol'

/**
 * Decides the next step of a sign-in. Undefined if there is none. The second factor comes first, so that a password alone
 * changes nothing.
 */
async function chooseStep(
  db: Kysely<Schema>,
  rules: AccessRules,
  account: Account,
  { provider, methods }: Pick<PendingLogin, 'provider' | 'methods'>,
): Promise<LoginStep | undefined> {
  const hasProved = methods.includes('mfa')
  const factors = hasProved ? [] : await listFactors(db, account.id)
  if (factors.length > 0) return 'second-factor'
  // The password of a directory is not ours.
  if (account.must_change_password && !provider) return 'new-password'
  const { issuer, evidence } = provider ?? {}
  return !hasProved && needsSecondFactor(rules, { issuer, evidence, ...account }) ? 'enrol' : undefined
}

type StepContext = Pick<UsersContext, 'rules'>

/** Finds the next step of a sign-in, with what is stored until then. Locks the account until the transaction ends. */
export async function findNextStep(
  { rules }: StepContext,
  trx: Transaction<Schema>,
  login: Omit<PendingLogin, 'mark'>,
): Promise<{ readonly step: LoginStep; readonly login: PendingLogin } | undefined> {
  const account = await lockAccount(trx, login.userId)
  const step = account && (await chooseStep(trx, rules, account, login))
  return step && { step, login: { ...login, mark: computeAccountMark(account) } }
}

/** The step that a pending sign-in waits for, and its account. Undefined if it waits for nothing. */
export async function findWaitingStep(
  { store, rules }: StepContext & Pick<UsersContext, 'store'>,
  { login }: FoundLogin,
): Promise<{ readonly step: LoginStep; readonly account: Account } | undefined> {
  const account = await store.db
    .selectFrom('clinician')
    .selectAll()
    .where('id', '=', login.userId)
    .executeTakeFirst()
  const step = account && (await chooseStep(store.db, rules, account, login))
  return step && { step, account }
}

/**
 * Ends a pending sign-in for the result of its step. Undefined if it has already ended, if it waits for another step, or if
 * the account changed since the last one.
 */
export async function takeStep(
  { rules }: StepContext,
  trx: Transaction<Schema>,
  found: FoundLogin,
  step: LoginStep,
): Promise<Pick<AuthUser, 'id' | 'fhirUserId'> | undefined> {
  if (!(await consumePendingLogin(trx, found))) return undefined
  const account = await lockAccount(trx, found.login.userId)
  if (!account || !isUsableAccount(account, rules)) return undefined
  const isSame = computeAccountMark(account) === found.login.mark
  return isSame && (await chooseStep(trx, rules, account, found.login)) === step
    ? { id: account.id, fhirUserId: account.fhir_user_id }
    : undefined
}
