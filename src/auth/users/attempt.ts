import type { Kysely, Transaction } from 'kysely'
import { type Failed, fail } from '../../core/index.ts'
import type { Schema, Store } from '../../store/index.ts'
import { createRandomToken, sha256 } from '../../store/index.ts'
import { findNetwork } from '../../web/http/index.ts'
import type { AuthUser } from '../base/user.ts'
import type { RightPassword } from './check-password.ts'
import type { UsersContext } from './context.ts'
import { createGuessLimit, forgetWrongPasswords } from './guesses.ts'
import { findSender, type Sender } from './senders.ts'
import { keepAccess } from './validity/facts.ts'
import { computeAccountMark, isUsableAccount } from './validity/rule.ts'

export interface Attempt extends Sender {
  readonly username: string
  readonly password: string
}

/** Stores a failure. */
type Keep = (trx: Transaction<Schema>) => Promise<void>

/** A refused login. The caller must run `keep`. */
export type RefusedAttempt = Failed & AttemptReason

type AttemptReason =
  /** Whether the username or the password was wrong is not disclosed. */
  | {
      readonly reason: 'password-wrong'
      readonly keep: Keep
      /** Whether the same was tried several times, so that the page says what else could be the reason. */
      readonly isRepeated: boolean
      /** For the audit trail. */
      readonly isLocked: boolean
    }
  | { readonly reason: 'password-too-many'; readonly retryAfterSeconds: number; readonly keep: Keep }

export type AttemptResult =
  | {
      readonly user: Pick<AuthUser, 'id' | 'fhirUserId'>
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
 * Checks one attempt. Every username takes the same steps, up to the response: unknown, known, disabled and locked ones. A
 * wrong password is counted as soon as it is compared, so that simultaneous guesses cannot exceed the limit; the failure that
 * its sender can notice is counted with the response. A success changes nothing yet: the caller stores it together with its
 * audit record.
 */
export async function tryLogin(
  context: LoginContext,
  { username, password, address, browser }: Attempt,
  record: (refused: RefusedAttempt) => Promise<void>,
): Promise<AttemptResult> {
  const { store, passwordCheck } = context
  const user = await findByUsername(store, username)
  const sender = await findSender(store.db, user?.id ?? '', { address, browser })
  const network = findNetwork(address)
  const limit = createAttemptLimit(context, { username, address, apart: sender.browser })
  const apart = `compared ${sender.browser ?? network}`
  const compared = createAttemptLimit(context, { username, address, apart })
  const guesses = createGuessLimit(context, user?.id ?? '', sender.hash)
  const refuse = async (reason: AttemptReason) => {
    const refused: RefusedAttempt = fail(reason)
    await record(refused)
    return refused
  }
  const before = await limit.wait()
  const keep = limit.touch
  if (before > 0) return refuse({ reason: 'password-too-many', retryAfterSeconds: before, keep })
  const isUsable = user !== undefined && isUsableAccount(user, context.rules)
  const isLocked = await guesses.isFull()
  return passwordCheck.takeTurn<AttemptResult>({
    username,
    network,
    canSucceed: isUsable && !isLocked,
    examine: async whose => {
      const limits = whose === 'account' ? { compared, guesses } : makeLimitsOfNobody(context)
      const isOpen = (await limits.compared.wait()) === 0 && !(await limits.guesses.isFull())
      const hash = whose === 'account' && isUsable && isOpen ? user.password_hash : undefined
      const right = await passwordCheck.compare(hash, password)
      if (right && user) return accept(user, right)
      await store.db.transaction().execute(async trx => {
        await limits.compared.add(trx)
        await (isOpen ? limits : makeLimitsOfNobody(context)).guesses.add(trx, address)
      })
      return undefined
    },
    refuse: async why => {
      if (why === 'waiting')
        return refuse({ reason: 'password-too-many', retryAfterSeconds: BUSY_SECONDS, keep })
      const wait = await limit.wait()
      const isLocked = await guesses.isFull()
      const isRepeated = (await limit.count()) >= REPEATED
      if (wait > 0) return refuse({ reason: 'password-too-many', retryAfterSeconds: wait, keep })
      return refuse(
        why === 'full'
          ? { reason: 'password-too-many', retryAfterSeconds: BUSY_SECONDS, keep: limit.add }
          : { reason: 'password-wrong', keep: limit.add, isLocked, isRepeated },
      )
    },
  })

  function accept(user: FoundUser, { newHash }: RightPassword): AttemptResult {
    return {
      user: { id: user.id, fhirUserId: user.fhir_user_id },
      async confirm(trx, changed) {
        const hash = changed?.newHash ?? newHash ?? user.password_hash
        if (!(await replaceHash(trx, user, hash, changed && context.clock()))) return undefined
        const what = changed ?? 'everything'
        const mark = computeAccountMark(user)
        const kept =
          hash === user.password_hash ? [] : await keepAccess(trx, { accountId: user.id, mark, what })
        await limit.clear(trx)
        await compared.clear(trx)
        await (changed ? forgetWrongPasswords(trx, user.id) : guesses.clear(trx))
        return { kept }
      },
    }
  }
}

/** For attempts whose account was examined before their turn: they do the same work. */
function makeLimitsOfNobody(context: LoginContext) {
  return {
    compared: createAttemptLimit(context, { username: '', address: '', apart: '' }),
    guesses: createGuessLimit(context, '', null),
  }
}

/** An attempt that counts as a failure until it is released. */
export interface Reservation {
  release(trx: Kysely<Schema>): Promise<void>
}

/**
 * The limits of failed attempts: for a username from a network or known browser, and for the network. Failures are counted in the database,
 * so that all instances share the count.
 */
export function createAttemptLimit(
  { store: { db }, settings, clock }: Pick<UsersContext, 'store' | 'settings' | 'clock'>,
  {
    username,
    address,
    apart,
  }: Pick<Attempt, 'username' | 'address'> & {
    /** Counted instead of the network, whatever others there do: the hash of a browser that the account knows. */
    readonly apart?: string | undefined
  },
) {
  const network = findNetwork(address)
  const ofUsername = { key: hashSender(username, apart ?? network), count: settings.loginFailureLimit }
  const ofNetwork = { key: hashSender(network), count: settings.loginFailureLimitPerAddress }
  const counts = apart === undefined ? [ofUsername, ofNetwork] : [ofUsername]

  /** Seconds until the next attempt is allowed, without `own` rows of this attempt. */
  async function wait(own = 0): Promise<number> {
    const since = clock() - settings.loginFailureWindowSeconds * 1000
    const seconds = counts.map(async ({ key, count }) => {
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
    const rows = counts.map(({ key }) => ({
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
    /**
     * Counts nothing. A refusal that is not counted writes something too: its audit record, which only accounts always
     * have, would otherwise take a commit more.
     */
    async touch(trx: Kysely<Schema>): Promise<void> {
      const username_address_hash = hashSender('refused', network)
      const { numUpdatedRows } = await trx
        .updateTable('login_failure')
        .set({ at: clock() })
        .where('username_address_hash', '=', username_address_hash)
        .executeTakeFirst()
      if (numUpdatedRows === 0n)
        await trx
          .insertInto('login_failure')
          .values({ username_address_hash, at: clock(), attempt: null })
          .execute()
    },
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

type LoginContext = Pick<UsersContext, 'store' | 'settings' | 'clock' | 'passwordCheck' | 'rules'>

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

type FoundUser = NonNullable<Awaited<ReturnType<typeof findByUsername>>>

function findByUsername({ db }: Store, username: string) {
  return db
    .selectFrom('clinician')
    .select(['id', 'fhir_user_id', 'password_hash', 'access_version', 'disabled', 'for_loopback'])
    .where('username', '=', username)
    .executeTakeFirst()
}
