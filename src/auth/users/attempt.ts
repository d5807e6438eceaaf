import type { Kysely, Transaction } from 'kysely'
import type { Schema, Store } from '../../store/index.ts'
import { createRandomToken, sha256 } from '../../store/index.ts'
import { findNetwork } from '../../web/index.ts'
import type { User } from '../base/user.ts'
import type { UsersContext } from './context.ts'
import { createGuessLimit, forgetWrongPasswords, type Sender } from './guesses.ts'
import { NO_PASSWORD } from './passwords.ts'
import { keepAccess } from './validity/facts.ts'
import { computeAccountMark, isUsableAccount } from './validity/rule.ts'

export interface Attempt extends Sender {
  readonly username: string
  readonly password: string
}

/** Stores a failure. */
type Keep = (trx: Transaction<Schema>) => Promise<void>

/** A refused login. The caller must run `keep`. */
export type RefusedAttempt =
  /** Whether the username or the password was wrong is not disclosed. */
  | {
      readonly kind: 'wrong'
      readonly keep: Keep
      /** Whether the same was tried several times, so that the page says what else could be the reason. */
      readonly isRepeated: boolean
      /** For the audit trail. */
      readonly isLocked: boolean
    }
  | { readonly kind: 'too-many'; readonly retryAfterSeconds: number; readonly keep?: Keep }

export type AttemptResult =
  | {
      readonly kind: 'right'
      readonly user: Pick<User, 'id' | 'fhirUserId'>
      /**
       * Undefined if the password was changed or the account disabled since the comparison; then try again. Otherwise stores
       * the new hash, if there is one, and deletes the failures. A new hash of the same password ends no access.
       */
      confirm(trx: Transaction<Schema>, changed?: ChangedPassword): Promise<Confirmed | undefined>
    }
  | RefusedAttempt

interface Confirmed {
  /** The grants that a new hash left. */
  readonly kept: readonly string[]
}

interface ChangedPassword {
  readonly newHash: string
  /** The login that does not end. */
  readonly loginIdHash: string
}

/**
 * Checks one attempt. Failures are counted before the password is compared, to save the work, and again afterwards. A
 * refusal is recorded at once, though its response may have to wait, so that simultaneous guesses cannot exceed the limit.
 * A success changes nothing yet: the caller stores it together with its audit record.
 */
export async function tryLogin(
  context: LoginContext,
  { username, password, address, browser }: Attempt,
  record: (refused: RefusedAttempt) => Promise<void>,
): Promise<AttemptResult> {
  const { store, checkPassword } = context
  const network = findNetwork(address)
  const limit = createAttemptLimit(context, { username, address })
  const refuse = async (refused: RefusedAttempt) => {
    await record(refused)
    return refused
  }
  const before = await limit.wait()
  if (before > 0) return refuse({ kind: 'too-many', retryAfterSeconds: before })
  const user = await findByUsername(store, username)
  const guesses = createGuessLimit(context, user?.id, { address, browser })
  const attempt = {
    // A locked account is like an unknown username, and even the time does not tell whether the password is right.
    passwordHash: (await guesses.isFull()) ? undefined : user?.password_hash,
    enabled: user !== undefined && isUsableAccount(user, context.rules),
    username,
    password,
    network,
  }
  return checkPassword<AttemptResult>(attempt, async result => {
    if (result.kind === 'busy') return refuse({ kind: 'too-many', retryAfterSeconds: BUSY_SECONDS })
    const wait = await limit.wait()
    if (wait > 0) return refuse({ kind: 'too-many', retryAfterSeconds: wait })
    const isLocked = await guesses.isFull()
    if (result.kind === 'right' && user && !isLocked)
      return {
        kind: 'right',
        user: { id: user.id, fhirUserId: user.fhir_user_id },
        async confirm(trx, changed) {
          const hash = changed?.newHash ?? result.newHash ?? user.password_hash
          if (!(await replaceHash(trx, user, hash, changed && context.clock()))) return undefined
          const what = changed ?? 'everything'
          const mark = computeAccountMark(user)
          const kept =
            hash === user.password_hash ? [] : await keepAccess(trx, { accountId: user.id, mark, what })
          await limit.clear(trx)
          await (changed ? forgetWrongPasswords(trx, user.id) : guesses.clear(trx))
          return { kept }
        },
      }
    const keep = async (trx: Transaction<Schema>) => {
      await limit.add(trx)
      if (!isLocked && user && user.password_hash !== NO_PASSWORD) await guesses.add(trx)
    }
    return refuse(
      result.kind === 'wrong' && result.queueIsFull
        ? { kind: 'too-many', retryAfterSeconds: BUSY_SECONDS, keep }
        : { kind: 'wrong', keep, isLocked, isRepeated: (await limit.count()) >= REPEATED },
    )
  })
}

/** An attempt that counts as a failure until it is released. */
export interface Reservation {
  release(trx: Kysely<Schema>): Promise<void>
}

/**
 * The limits of failed attempts: for a username from a network, and for the network. Failures are counted in the database,
 * so that all instances share the count.
 */
export function createAttemptLimit(
  { store: { db }, settings, clock }: Pick<UsersContext, 'store' | 'settings' | 'clock'>,
  {
    username,
    address,
    isEverywhere = false,
  }: Pick<Attempt, 'username' | 'address'> & {
    /** Counts the failures of all networks together: only somebody who knows the password can cause them. */
    readonly isEverywhere?: boolean
  },
) {
  const network = findNetwork(address)
  const sender = isEverywhere ? [username] : [username, network]
  const ofUsername = { key: hashSender(...sender), count: settings.loginFailureLimit }
  const ofNetwork = { key: hashSender(network), count: settings.loginFailureLimitPerAddress }

  /** Seconds until the next attempt is allowed, without `own` rows of this attempt. */
  async function wait(own = 0): Promise<number> {
    const since = clock() - settings.loginFailureWindowSeconds * 1000
    const seconds = [ofUsername, ofNetwork].map(async ({ key, count }) => {
      const oldest = await db
        .selectFrom('login_failure')
        .select('at')
        .where('username_address_hash', '=', key)
        .where('at', '>', since)
        .orderBy('at', 'desc')
        .offset(count - 1 + own)
        .limit(1)
        .executeTakeFirst()
      return oldest === undefined ? 0 : Math.ceil((oldest.at - since) / 1000)
    })
    return Math.max(...(await Promise.all(seconds)))
  }

  async function add(trx: Kysely<Schema>, attempt: string | null = null): Promise<void> {
    const rows = [ofUsername, ofNetwork].map(({ key }) => ({
      username_address_hash: key,
      at: clock(),
      attempt,
    }))
    await trx.insertInto('login_failure').values(rows).execute()
  }

  return {
    wait: () => wait(),
    /** The failures of this username from this network. */
    async count(): Promise<number> {
      const { count } = await db
        .selectFrom('login_failure')
        .select(({ fn }) => fn.countAll().as('count'))
        .where('username_address_hash', '=', ofUsername.key)
        .where('at', '>', clock() - settings.loginFailureWindowSeconds * 1000)
        .executeTakeFirstOrThrow()
      return Number(count)
    },
    add: (trx: Kysely<Schema>) => add(trx),
    async clear(trx: Kysely<Schema>): Promise<void> {
      await trx.deleteFrom('login_failure').where('username_address_hash', '=', ofUsername.key).execute()
    },
    /**
     * Counts an attempt as a failure before its password is checked, so that simultaneous attempts cannot exceed the limit.
     * Returns undefined if the limit is reached: each attempt sees the rows of all that were counted before it.
     */
    async reserve(): Promise<Reservation | undefined> {
      const attempt = createRandomToken()
      const release = async (trx: Kysely<Schema>) => {
        await trx.deleteFrom('login_failure').where('attempt', '=', attempt).execute()
      }
      await add(db, attempt)
      if ((await wait(1)) === 0) return { release }
      await release(db)
      return undefined
    },
  }
}

function hashSender(...sender: readonly string[]): string {
  return sha256(JSON.stringify(sender))
}

type LoginContext = Pick<UsersContext, 'store' | 'settings' | 'clock' | 'checkPassword' | 'rules'>

const BUSY_SECONDS = 5

/** Failures after which a user doubts that it is a typing error. */
const REPEATED = 2

/** Replaces the hash by compare-and-set. `chosenAt`: if the user chose the password. The row is locked until the transaction ends, even if the hash stays the same. */
async function replaceHash(
  trx: Transaction<Schema>,
  { id, password_hash }: { readonly id: string; readonly password_hash: string },
  newHash: string,
  chosenAt: number | undefined,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('clinician')
    .set({
      password_hash: newHash,
      ...(chosenAt !== undefined && { must_change_password: false, password_changed_at: chosenAt }),
    })
    .where('id', '=', id)
    .where('password_hash', '=', password_hash)
    .where('disabled', '=', false)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

function findByUsername({ db }: Store, username: string) {
  return db
    .selectFrom('clinician')
    .select(['id', 'fhir_user_id', 'password_hash', 'access_version', 'disabled', 'for_loopback'])
    .where('username', '=', username)
    .executeTakeFirst()
}
