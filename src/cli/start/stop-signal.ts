/** What signals arrive at: the process, or a stand-in. */
export interface SignalSource {
  on(signal: 'SIGTERM' | 'SIGINT', listener: () => void): unknown
}

/** npm passes on a signal that the terminal has already sent to all: the same stop may be asked for twice. */
const SAME_STOP_MS = 1000

/**
 * Resolves at the first SIGTERM or Ctrl-C. A second signal within a second belongs to the same stop (START-5); a later
 * one ends the process at once.
 */
export function stopSignal(source: SignalSource, force: () => void, clock: () => number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let first: number | undefined
  const listener = () => {
    if (first === undefined) {
      first = clock()
      resolve()
    } else if (clock() - first > SAME_STOP_MS) {
      force()
    }
  }
  source.on('SIGTERM', listener)
  source.on('SIGINT', listener)
  return promise
}
