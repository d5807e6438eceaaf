import type { CallerConnection } from './request.ts'

const waiting = new WeakMap<CallerConnection, Set<() => void>>()

/**
 * Calls `leave` when the connection closes, unless the returned function was called before. The connection has one listener,
 * however many requests wait for it.
 */
export function watchConnection(connection: CallerConnection, leave: () => void): () => void {
  const known = waiting.get(connection)
  const calls = known ?? new Set()
  if (!known) {
    waiting.set(connection, calls)
    connection.once('close', () => {
      for (const call of calls) call()
    })
  }
  calls.add(leave)
  return () => calls.delete(leave)
}
