import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { createCachedFetch } from '../../cache/index.ts'
import type { Store } from '../../store/index.ts'
import { LIMITS } from '../base/limits.ts'
import { hashPassword, isPasswordOf, PASSWORD_COST, readCost } from './passwords.ts'

interface PasswordAttempt {
  /** The stored hash; undefined for an unknown username. */
  readonly passwordHash: string | undefined
  readonly password: string
  /** Whether the account is enabled. */
  readonly enabled: boolean
  readonly username: string
  readonly network: string
}

export type PasswordResult =
  | {
      readonly kind: 'right' /** Replaces a cheaper hash. */
      readonly newHash: string | undefined
    }
  | {
      readonly kind: 'wrong' /** Whether the response cannot be queued. */
      readonly queueIsFull: boolean
    }
  /** Too many attempts of this sender are waiting; the password was not compared. */
  | { readonly kind: 'busy' }

/**
 * Compares a password and settles the result before the next attempt, so that simultaneous guesses are counted.
 * Resolves when the result may be disclosed.
 */
export type CheckPassword = <Settled extends { readonly kind: string }>(
  attempt: PasswordAttempt,
  settle: (result: PasswordResult) => Promise<Settled>,
) => Promise<Settled>

/** Comparisons are made to look as expensive as the highest stored cost, up to this one, which takes seconds. */
const MAX_COST = 14
const COST_KEPT_MS = 60_000

/**
 * Compares passwords, a few at a time. The response to a correct one is sent as soon as possible. All others wait in one
 * queue and cost as much as the most expensive stored hash, so that timing does not reveal whether a username exists.
 */
export function createPasswordCheck({
  store,
  clock,
  cost = PASSWORD_COST,
}: {
  readonly store: Store
  readonly clock: () => number
  /** The cost of new hashes. */
  readonly cost?: number | undefined
}): CheckPassword {
  const queue = new PasswordQueue({ atOnce: LIMITS.passwordsAtOnce, longest: LIMITS.loginsWaiting })
  const waiting = new Map<string, number>()
  let lastMs = 0

  const highestCost = createCachedFetch({
    clock,
    fetch: async () => ({ value: (await findHighestCost(store)) ?? cost, freshForMs: COST_KEPT_MS }),
  })

  async function compare({ passwordHash, password, enabled }: PasswordAttempt): Promise<PasswordResult> {
    const start = performance.now()
    const target = await highestCost.get('cost')
    const isRight = await isPasswordOf(passwordHash, password, target)
    lastMs = performance.now() - start
    if (!isRight || !enabled) return { kind: 'wrong', queueIsFull: queue.isFull }
    const own = readCost(passwordHash) ?? target
    const wanted = Math.max(cost, target)
    return { kind: 'right', newHash: own < wanted ? await hashPassword(password, wanted) : undefined }
  }

  const check: CheckPassword = async (attempt, settle) => {
    const { passwordHash, username, network } = attempt
    const compareAndSettle = async () => settle(await compare(attempt))
    if (passwordHash !== undefined) {
      // By username first, so that guesses at one user from many networks do not delay others.
      const settled = await queue.run({ sender: [username, network], first: true }, compareAndSettle)
      if (settled.kind === 'right' || queue.isFull) return settled
      return queue.run({ sender: [network], first: false }, async () => settled)
    }
    if (!queue.isFull) return queue.run({ sender: [network], first: false }, compareAndSettle)
    // As long as a comparison takes.
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

async function findHighestCost({ db }: Store): Promise<number | undefined> {
  const { cost } = await db
    .selectFrom('clinician')
    .select(sql<string | null>`max(substr(password_hash, 5, 2))`.as('cost'))
    .where('password_hash', 'like', '$2_$__$%')
    .executeTakeFirstOrThrow()
  return cost === null ? undefined : Math.min(Number(cost), MAX_COST)
}

/**
 * Waiting attempts by sender. Each sender has one turn before any has a second; the same applies to the senders within a
 * sender.
 */
class Lane {
  readonly #senders = new Map<string, Lane>()
  readonly #starts: (() => void)[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  add([sender, ...within]: readonly string[], start: () => void): void {
    this.#size += 1
    if (sender === undefined) {
      this.#starts.push(start)
      return
    }
    const lane = this.#senders.get(sender) ?? new Lane()
    this.#senders.set(sender, lane)
    lane.add(within, start)
  }

  takeNext(): (() => void) | undefined {
    if (this.#size === 0) return undefined
    this.#size -= 1
    const [next] = this.#senders
    if (!next) return this.#starts.shift()
    const [sender, lane] = next
    this.#senders.delete(sender)
    const start = lane.takeNext()
    if (lane.size > 0) this.#senders.set(sender, lane)
    return start
  }
}

/**
 * Limits the number of concurrent password comparisons, because each occupies a processor. Attempts with existing
 * usernames go first, so that a flood of made-up usernames does not block logins.
 */
export class PasswordQueue {
  readonly #first = new Lane()
  readonly #rest = new Lane()
  readonly #atOnce: number
  readonly #longest: number
  #running = 0

  constructor({ atOnce, longest }: { readonly atOnce: number; readonly longest: number }) {
    this.#atOnce = atOnce
    this.#longest = longest
  }

  /** Whether attempts that do not go first must be refused. */
  get isFull(): boolean {
    return this.#rest.size >= this.#longest
  }

  async run<Result>(
    { sender, first }: { readonly sender: readonly string[]; readonly first: boolean },
    work: () => Promise<Result>,
  ): Promise<Result> {
    if (this.#running >= this.#atOnce)
      await new Promise<void>(start => (first ? this.#first : this.#rest).add(sender, start))
    else this.#running += 1
    try {
      return await work()
    } finally {
      const next = this.#first.takeNext() ?? this.#rest.takeNext()
      if (next) next()
      else this.#running -= 1
    }
  }
}
