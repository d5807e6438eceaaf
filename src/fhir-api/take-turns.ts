import { setImmediate } from 'node:timers/promises'
import { limits } from '../fhir/index.ts'

/** Lets other requests run when this one has used the event loop for `TURN_MS`. */
export function createTurns(): () => Promise<void> {
  let began = performance.now()
  return async () => {
    if (performance.now() - began < limits.TURN_MS) return
    await setImmediate()
    began = performance.now()
  }
}

/** Runs work that pauses, and lets other requests run in between. */
export async function runInTurns<T>(work: Generator<undefined, T>): Promise<T> {
  const takeTurns = createTurns()
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
    await takeTurns()
  }
}
