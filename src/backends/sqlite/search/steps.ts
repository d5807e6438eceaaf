import { setImmediate } from 'node:timers/promises'
import { fail } from '../../../fhir/index.ts'
import type { Failure } from '../../../fhir-api/index.ts'
import { SEARCH_STEPS } from '../limits.ts'

/** Work that can pause between its steps, so that a long search does not keep the event loop busy. */
export type Steps<T> = Generator<undefined, T, undefined>

/** Does all steps at once. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/** Does at most so many steps at once; undefined if these are not all. */
export function finishWithin<T>(steps: Steps<T>, most: number): T | undefined {
  for (let step = 0; step < most; step++) {
    const { done, value } = steps.next()
    if (done) return value
  }
  return undefined
}

/** Does the first step at once, and the others in later turns of the event loop: not more than so many. */
export function finishInTurns<T>(steps: Steps<T>, most = SEARCH_STEPS): T | Failure | Promise<T | Failure> {
  const { done, value } = steps.next()
  return done ? value : continueInTurns(steps, most)
}

async function continueInTurns<T>(steps: Steps<T>, most: number): Promise<T | Failure> {
  for (let step = 1; step < most; step++) {
    await waitForTurn()
    const { done, value } = steps.next()
    if (done) return value
  }
  return TOO_MANY_STEPS
}

const TOO_MANY_STEPS = fail({
  problem: 'too-costly',
  text: 'Cannot complete the search: it reads too many resources. Add a parameter that fewer resources match',
})

let lastTurn: Promise<unknown> = Promise.resolve()

/** In a turn of the event loop one search takes a step, however many are waiting. */
function waitForTurn(): Promise<unknown> {
  lastTurn = lastTurn.then(() => setImmediate())
  return lastTurn
}
