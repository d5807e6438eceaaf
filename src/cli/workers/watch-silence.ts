interface SilenceOptions {
  /** Resolves or rejects when the process responds. */
  readonly ping: () => Promise<unknown>
  /** Called once. */
  readonly onSilent: () => void
  /** Ticks without a response after which the process counts as silent. */
  readonly ticks: number
}

/**
 * Returns the function to call at every tick. It counts ticks and not time: a supervisor that was stopped itself, or had no
 * processor, has not given its workers the time to respond.
 */
export function watchSilence({ ping, onSilent, ticks }: SilenceOptions): () => void {
  let isWaiting = false
  let silent = 0
  const hear = () => {
    isWaiting = false
  }
  return () => {
    if (isWaiting) {
      silent += 1
      if (silent === ticks) onSilent()
      return
    }
    silent = 0
    isWaiting = true
    ping().then(hear, hear)
  }
}
