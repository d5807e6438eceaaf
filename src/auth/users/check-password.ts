import { setTimeout } from 'node:timers/promises'
import { sql } from 'kysely'
import { createCachedFetch } from '../../cache/index.ts'
import type { Store } from '../../store/index.ts'
import { LIMITS } from '../base/limits.ts'
import { hashPassword, isPasswordOf, PASSWORD_COST, readCost } from './passwords.ts'

/** A password that matches the stored hash. */
export interface RightPassword {
  /** Replaces a cheaper hash. */
  readonly newHash: string | undefined
}

/** An attempt that waits for its turn. */
interface Turn<Result> {
  readonly username: string
  readonly network: string
  /** Whether a password can be right: the account exists, is enabled and is not locked. Nobody learns it by a refusal. */
  readonly canSucceed: boolean
  /** Compares the password with that of the account, or does the same work for nobody. Counts a wrong one. */
  examine(whose: 'account' | 'nobody'): Promise<Result | undefined>
  /** `waiting`: so many attempts of this sender wait that it was not examined. `full`: the queue has no room. */
  refuse(why: 'wrong' | 'waiting' | 'full'): Promise<Result>
}

export interface PasswordCheck {
  /** Undefined if the password is wrong. Takes as long without a hash. */
  compare(passwordHash: string | undefined, password: string): Promise<RightPassword | undefined>
  /** Examines an attempt when its turn comes. */
  takeTurn<Result>(turn: Turn<Result>): Promise<Result>
}

/** Comparisons are made to look as expensive as the highest stored cost, up to this one, which takes seconds. */
const MAX_COST = 14
const COST_KEPT_MS = 60_000

/**
 * Compares passwords, a few at a time, each at the cost of the most expensive stored hash. A right password is accepted as
 * soon as possible. Every attempt has a place in one line, whatever its username, and its refusal is sent when its turn there
 * comes and after the same work; if the line is full, after a fixed time. So neither the order nor the time of refusals
 * reveals whether an account exists or is locked.
 */
export function createPasswordCheck({
  store,
  clock,
  cost = PASSWORD_COST,
  pause = setTimeout,
}: {
  readonly store: Store
  readonly clock: () => number
  /** The cost of new hashes. */
  readonly cost?: number | undefined
  readonly pause?: (ms: number) => Promise<unknown>
}): PasswordCheck {
  const queue = new PasswordQueue({ atOnce: LIMITS.passwordsAtOnce, longest: LIMITS.loginsWaiting })
  const waiting = new Map<string, number>()

  const highestCost = createCachedFetch({
    clock,
    fetch: async () => ({ value: (await findHighestCost(store)) ?? cost, freshForMs: COST_KEPT_MS }),
  })

  async function takePlace<Result>(turn: Turn<Result>): Promise<Result> {
    const { username, network, canSucceed, examine, refuse } = turn
    const accepted = Promise.withResolvers<Result>()
    let examined: Promise<Result | undefined> | undefined
    let isOver = false
    const examineOnce = async () => {
      examined ??= examine('account')
      const right = await examined
      if (right !== undefined) accepted.resolve(right)
    }
    const inLine = queue.isFull
      ? pause(LIMITS.loginBusyMs).then(() => (isOver ? accepted.promise : refuse('full')))
      : queue.run({ sender: [network], first: false }, async () => {
          if (isOver) return accepted.promise
          await (examined ? examine('nobody') : examineOnce())
          return (await examined) ?? refuse('wrong')
        })
    // By username first, so that guesses at one user from many networks do not delay others.
    const first = canSucceed
      ? queue.run({ sender: [username, network], first: true }, async () => {
          if (!isOver && !examined) await examineOnce()
        })
      : undefined
    first?.catch(accepted.reject)
    try {
      return await Promise.race([accepted.promise, inLine])
    } finally {
      isOver = true
    }
  }

  return {
    async compare(passwordHash, password) {
      const target = await highestCost.get('cost')
      if (!(await isPasswordOf(passwordHash, password, target))) return undefined
      const own = readCost(passwordHash) ?? target
      const wanted = Math.max(cost, target)
      return { newHash: own < wanted ? await hashPassword(password, wanted) : undefined }
    },
    async takeTurn(turn) {
      const sender = JSON.stringify([turn.username, turn.network])
      const before = waiting.get(sender) ?? 0
      if (before >= LIMITS.loginsWaitingPerUsername) return turn.refuse('waiting')
      waiting.set(sender, before + 1)
      try {
        return await takePlace(turn)
      } finally {
        const left = (waiting.get(sender) ?? 1) - 1
        if (left > 0) waiting.set(sender, left)
        else waiting.delete(sender)
      }
    },
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
 * Limits the number of concurrent password comparisons, because each occupies a processor. Attempts that can succeed
 * also go first, so that a flood of made-up usernames does not block logins.
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
