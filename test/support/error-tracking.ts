/**
 * Loaded into every test process before `node:test`, which remembers the test of every promise in order to name the test of an
 * uncaught error. That takes a twentieth of the CPU time, so a group stops it when its tests begin. An uncaught error
 * then ends the process with an error, and each file of the group runs again alone, where it is attributed to its test.
 */
import asyncHooks from 'node:async_hooks'

const { createHook } = asyncHooks
let stop = () => {}

function createFirstHook(callbacks: asyncHooks.HookCallbacks): asyncHooks.AsyncHook {
  const hook = createHook(callbacks)
  stop = () => void hook.disable()
  Object.assign(asyncHooks, { createHook })
  return hook
}
Object.assign(asyncHooks, { createHook: createFirstHook })

/** Call it when all tests are defined: until then `node:test` needs it to find the suite of a test. */
export function stopTracking(): void {
  stop()
}
