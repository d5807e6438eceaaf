import { setImmediate } from 'node:timers/promises'
import { limits } from '../../fhir/index.ts'

/** Lets other requests have their turn when this one has kept the event loop for `TURN_MS`. */
export function createTurns(now: () => number = () => performance.now()): () => Promise<void> {
  let began = now()
  return async () => {
    if (now() - began < limits.TURN_MS) return
    await setImmediate()
    began = now()
  }
}
