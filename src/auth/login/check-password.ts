import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { createCachedFetch } from '../../cache/index.ts'
import type { Store } from '../../store/index.ts'
import { costOf, hashPassword, isPasswordOf, PASSWORD_COST } from '../clinician/password.ts'
import { LIMITS } from '../limits.ts'
import { PasswordQueue } from './password-queue.ts'

export interface PasswordAttempt {
  /** The stored hash, or undefined when there is no such username. */
  readonly passwordHash: string | undefined
  readonly password: string
  /** Whether the login may succeed at all. */
  readonly enabled: boolean
  readonly username: string
  readonly network: string
}

export type PasswordResult =
  | {
      readonly kind: 'right' /** To be stored in place of a cheaper one. */
      readonly newHash: string | undefined
    }
  | {
      readonly kind: 'wrong' /** Whether there is no room for it to wait. */
      readonly queueIsFull: boolean
    }
  /** Too many attempts of this sender are waiting: nothing was compared. */
  | { readonly kind: 'busy' }

/**
 * Compares a password and has the result settled before another attempt is looked at, so that guesses of one moment count.
 * Resolves with what it was settled to, when that may be told.
 */
export type CheckPassword = <Settled extends { readonly kind: string }>(
  attempt: PasswordAttempt,
  settle: (result: PasswordResult) => Promise<Settled>,
) => Promise<Settled>

/** The most costly hash that others are made to look like. Beyond it a comparison takes many seconds. */
const COSTLIEST = 14
const COST_KEPT_MS = 60_000

/**
 * Compares passwords, a few at a time. A right one is answered as soon as possible. Every other answer takes its turn
 * in one queue and costs as much as the costliest stored hash, so that neither the queue nor the hash tells whether a
 * username exists.
 */
export function createPasswordCheck({
  store,
  clock,
  cost = PASSWORD_COST,
}: {
  readonly store: Store
  readonly clock: () => number
  /** Of the hashes that are made. */
  readonly cost?: number | undefined
}): CheckPassword {
  const queue = new PasswordQueue({ atOnce: LIMITS.passwordsAtOnce, longest: LIMITS.loginsWaiting })
  const waiting = new Map<string, number>()
  let lastMs = 0

  const costliest = createCachedFetch({
    clock,
    fetch: async () => ({ value: (await costliestStored(store)) ?? cost, freshForMs: COST_KEPT_MS }),
  })

  async function compare({ passwordHash, password, enabled }: PasswordAttempt): Promise<PasswordResult> {
    const start = performance.now()
    const target = await costliest.get('cost')
    const isRight = await isPasswordOf(passwordHash, password, target)
    lastMs = performance.now() - start
    if (!isRight || !enabled) return { kind: 'wrong', queueIsFull: queue.isFull }
    const own = costOf(passwordHash) ?? target
    const wanted = Math.max(cost, target)
    return { kind: 'right', newHash: own < wanted ? await hashPassword(password, wanted) : undefined }
  }

  const check: CheckPassword = async (attempt, settle) => {
    const { passwordHash, username, network } = attempt
    const look = async () => settle(await compare(attempt))
    if (passwordHash !== undefined) {
      // By username first: guesses at one from many networks keep nobody else waiting.
      const settled = await queue.run({ sender: [username, network], first: true }, look)
      if (settled.kind === 'right' || queue.isFull) return settled
      return queue.run({ sender: [network], first: false }, async () => settled)
    }
    if (!queue.isFull) return queue.run({ sender: [network], first: false }, look)
    // As long as it takes to find out that a password is wrong.
    await pause(lastMs)
    return settle({ kind: 'wrong', queueIsFull: true })
  }

  return async (attempt, settle) => {
    const sender = JSON.stringify([attempt.username, attempt.network])
    const before = waiting.get(sender) ?? 0
    if (before >= LIMITS.loginsWaitingPerUsername) return settle({ kind: 'busy' })
    waiting.set(sender, before + 1)
    try {
      return await check(attempt, settle)
    } finally {
      const left = (waiting.get(sender) ?? 1) - 1
      if (left > 0) waiting.set(sender, left)
      else waiting.delete(sender)
    }
  }
}

async function costliestStored({ db }: Store): Promise<number | undefined> {
  const { cost } = await db
    .selectFrom('clinician')
    .select(sql<string | null>`max(substr(password_hash, 5, 2))`.as('cost'))
    .where('password_hash', 'like', '$2_$__$%')
    .executeTakeFirstOrThrow()
  return cost === null ? undefined : Math.min(Number(cost), COSTLIEST)
}
