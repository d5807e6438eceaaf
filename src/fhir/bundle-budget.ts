import { fail } from './failure.ts'
import { BUNDLE_RESPONSE_BYTES, BUNDLE_WORK_MS } from './limits.ts'
import type { FhirProblem } from './problem.ts'

/** What the entries of one Bundle may cost together. */
export interface BundleBudget {
  /** Why no further entry is processed; undefined while there is some budget left. */
  problem(): FhirProblem | undefined
  /** Writes an entry if the response has room for it. Content that is too long is not written a second time. */
  fitEntry(content: string | undefined, write: () => string): string | undefined
  /** Whether the response has room for this text. Takes the room if it has; else no other entry gets any. */
  takeRoom(text: string): boolean
  /** Adds milliseconds of work. */
  addWork(ms: number): void
}

export function openBundleBudget(connection: { readonly destroyed: boolean }): BundleBudget {
  let room = BUNDLE_RESPONSE_BYTES
  let work = 0

  function takeRoom(text: string): boolean {
    const bytes = text.length > room ? text.length : Buffer.byteLength(text)
    const fits = room >= bytes
    room = fits ? room - bytes : -1
    return fits
  }

  return {
    problem() {
      if (connection.destroyed) return CLIENT_GONE
      if (room < 0) return RESPONSE_TOO_LARGE
      return work > BUNDLE_WORK_MS ? TOO_MUCH_WORK : undefined
    },
    takeRoom,
    fitEntry(content, write) {
      const text = content !== undefined && content.length > room ? content : write()
      return takeRoom(text) ? text : undefined
    },
    addWork(ms) {
      work += ms
    },
  }
}

export const RESPONSE_TOO_LARGE = fail({
  problem: 'too-costly',
  text: `Cannot process entry: the response to the Bundle would exceed ${BUNDLE_RESPONSE_BYTES} bytes`,
})

const TOO_MUCH_WORK = fail({
  problem: 'too-costly',
  text: `Cannot process entry: the Bundle has taken more than ${BUNDLE_WORK_MS} ms of work`,
})

const CLIENT_GONE = fail({
  problem: 'too-costly',
  text: 'Cannot process entry: the client has closed the connection',
})
