import { type CallerConnection, watchConnection } from '../../../fhir-api/index.ts'
import { UPSTREAM_WAITING_PER_GRANT } from '../limits.ts'
import type { Deadlines, Timed } from './exchange.ts'

/** The caller on whose behalf a request is sent. */
export interface UpstreamCaller {
  /** The fingerprint of the grant: all of its tokens share one part. */
  readonly holder: string
  readonly connection: CallerConnection
}

/** Releases a slot. Called once. */
export type Release = () => void

/** Why there is no slot: the time has passed, the caller has disconnected, or too many requests of the grant wait. */
export type NoSlot = 'late' | 'abandoned' | 'crowded'

/**
 * Shares the connections to the upstream among grants: each has at most a part of them, and waiting grants take turns. A
 * request that has waited too long, or whose caller has disconnected, gets no slot.
 */
export interface Slots {
  take(caller: UpstreamCaller, timeoutMs: number): Release | NoSlot | Promise<Release | NoSlot>
}

interface Waiting extends Timed {
  resolve(outcome: Release | NoSlot): void
  stopWatching(): void
}

interface Share {
  active: number
  readonly waiting: Waiting[]
}

export function createSlots(max: number, maxOfGrant: number, deadlines: Deadlines): Slots {
  let active = 0
  let waitingCount = 0
  // In the order of the turns.
  const shares = new Map<string, Share>()

  function getShare(holder: string): Share {
    const share = shares.get(holder) ?? { active: 0, waiting: [] }
    shares.set(holder, share)
    return share
  }

  function start(holder: string, share: Share): Release {
    active += 1
    share.active += 1
    return () => {
      active -= 1
      share.active -= 1
      if (share.active === 0 && share.waiting.length === 0) shares.delete(holder)
      if (waitingCount > 0) serveNext()
    }
  }

  function serveNext(): void {
    for (const [holder, share] of shares) {
      if (active >= max) return
      if (share.active >= maxOfGrant) continue
      const [next] = share.waiting
      if (!next) continue
      leave(share, next)
      shares.delete(holder)
      shares.set(holder, share)
      next.resolve(start(holder, share))
      return
    }
  }

  function leave({ waiting }: Share, left: Waiting): void {
    waiting.splice(waiting.indexOf(left), 1)
    waitingCount -= 1
    deadlines.delete(left)
    left.stopWatching()
  }

  function wait(
    { holder, connection }: UpstreamCaller,
    share: Share,
    timeoutMs: number,
  ): Promise<Release | NoSlot> {
    return new Promise(resolve => {
      const giveUp = (why: NoSlot) => {
        leave(share, waiting)
        if (share.active === 0 && share.waiting.length === 0) shares.delete(holder)
        resolve(why)
      }
      const waiting: Waiting = {
        resolve,
        deadline: performance.now() + timeoutMs,
        index: -1,
        expire: () => giveUp('late'),
        stopWatching: watchConnection(connection, () => giveUp('abandoned')),
      }
      share.waiting.push(waiting)
      waitingCount += 1
      deadlines.add(waiting)
    })
  }

  return {
    take(caller, timeoutMs) {
      const share = getShare(caller.holder)
      if (active < max && share.active < maxOfGrant) return start(caller.holder, share)
      if (share.waiting.length >= UPSTREAM_WAITING_PER_GRANT) return 'crowded'
      return wait(caller, share, timeoutMs)
    },
  }
}
