import { setImmediate } from 'node:timers/promises'

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

/** Does the first step at once, and each of the others in a turn of the event loop of its own. */
export function finishInTurns<T>(steps: Steps<T>): T | Promise<T> {
  const { done, value } = steps.next()
  return done ? value : continueInTurns(steps)
}

async function continueInTurns<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    await setImmediate()
    const { done, value } = steps.next()
    if (done) return value
  }
}
