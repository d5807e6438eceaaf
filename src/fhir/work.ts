import { setImmediate } from 'node:timers/promises'
import type { Failed, StoredFacts } from '../core/index.ts'
import { TURN_MS, WORK_UNITS } from './limits.ts'
import type { EXCESSES } from './reasons/excesses.ts'
import { failFor } from './reasons/reasons.ts'

/** Why a request is not completed. */
export interface TooMuchWork extends Failed {
  readonly reason: (typeof REASONS)[WorkKind]
  readonly facts: StoredFacts
}

/**
 * The units that each kind of work takes: about a microsecond of CPU time. A value is one that is parsed for one type, a row
 * one of an index of the embedded server; it counts again for every few values that it is compared with. A statement is one
 * that a search or history of the embedded server runs. A request is one to the upstream, and a character one of its response.
 */
const COSTS = {
  entry: 100,
  parameter: 20,
  value: 4,
  interaction: 50,
  search: 200,
  write: 250,
  operation: 200,
  patch: 100,
  element: 0.2,
  reference: 15,
  row: 2,
  statement: 60,
  written: 5,
  request: 600,
  character: 0.02,
} as const

export type WorkKind = keyof typeof COSTS

/** Their sentences say how a caller asks for less of it. */
const REASONS = {
  entry: 'work-of-bundle',
  parameter: 'work-of-parameters',
  value: 'work-of-values',
  interaction: 'work-of-bundle',
  search: 'work-of-bundle',
  write: 'work-of-bundle',
  operation: 'work-of-bundle',
  patch: 'work-of-bundle',
  element: 'work-of-patches',
  reference: 'work-of-references',
  row: 'work-of-rows',
  statement: 'work-of-statements',
  written: 'work-of-bundle',
  request: 'work-of-requests',
  character: 'work-of-characters',
} as const satisfies Readonly<Record<WorkKind, keyof typeof EXCESSES>>

/**
 * The work that one request may cause, in whatever part of the server. Whoever works counts the work before, stops if there
 * is none left, and lets other requests run in between. The units do not depend on the machine or on other requests, so that
 * a request that is accepted once is always accepted (docs/decisions/0160-bundle-budget.md).
 */
export class Work {
  #left: number
  #began = performance.now()
  #failure: TooMuchWork | undefined

  constructor(units = WORK_UNITS) {
    this.#left = units
  }

  /** Counts work before it is done. Returns the failure of the request if no work is left for it. */
  count(kind: WorkKind, times = 1): TooMuchWork | undefined {
    this.#left -= COSTS[kind] * times
    if (this.#left < 0) this.#failure ??= failFor(REASONS[kind])
    return this.#failure
  }

  /** The failure of the request, if no work is left. */
  get failure(): TooMuchWork | undefined {
    return this.#failure
  }

  /** Begins a turn: the request has not used the event loop until now. */
  beginTurn(): void {
    this.#began = performance.now()
  }

  /** Whether this request has used the event loop for `TURN_MS`. */
  get isLong(): boolean {
    return performance.now() - this.#began >= TURN_MS
  }

  /** Lets other requests run, if this one has used the event loop for long. */
  pause(): Promise<void> | undefined {
    return this.isLong ? this.#takeTurn() : undefined
  }

  async #takeTurn(): Promise<void> {
    await setImmediate()
    this.beginTurn()
  }
}

/** Runs work that pauses, and lets other requests run in between. */
export async function runInTurns<T>(work: Work, steps: Generator<undefined, T>): Promise<T> {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
    await work.pause()
  }
}

/** Runs work that pauses, without a pause. */
export function runAtOnce<T>(steps: Generator<undefined, T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}
