import type { TokenSource } from './bridge.ts'

/** Obtains a token. Concurrent requests wait for the same one. */
export function createTokens(options: {
  /** With these scopes besides those of the last one. */
  readonly obtain: (more: string, signal: AbortSignal) => Promise<string>
  /** Whether a person can be asked for more. */
  readonly canExtend: boolean
}): TokenSource {
  const closing = new AbortController()
  let current: string | undefined
  let pending: Promise<string> | undefined
  const obtain = (more: string): Promise<string> => {
    pending ??= options
      .obtain(more, closing.signal)
      .then(token => {
        current = token
        return token
      })
      .finally(() => {
        pending = undefined
      })
    return pending
  }
  return {
    get: async () => current ?? obtain(''),
    renew: async refused => (current !== undefined && current !== refused ? current : obtain('')),
    async extend(refused, scopes) {
      if (!options.canExtend) return undefined
      return current !== refused ? current : obtain(scopes)
    },
    close: () => closing.abort(new Error('the input has ended')),
  }
}
