import { UPSTREAM_WAITING_PER_GRANT } from '../limits.ts'
import type { Deadlines, Timed } from './exchange.ts'

/** The caller on whose behalf a request is sent. */
export interface Caller {
  /** The fingerprint of the grant: all of its tokens share one part. */
  readonly holder: string
  /** Destroyed when the caller has disconnected. */
  readonly connection: { readonly destroyed: boolean }
}

/** Releases a slot. Called once. */
export type Release = () => void

/** Why there is no slot: the time has passed, the caller has disconnected, or too many requests of the grant wait. */
export type NoSlot = 'late' | 'crowded'

/**
 * Shares the connections to the upstream among grants: each has at most a part of them, and waiting grants take turns. A
 * request that has waited too long, or whose caller has disconnected, gets no slot.
 */
export interface Slots {
  take(caller: Caller, timeoutMs: number): Release | NoSlot | Promise<Release | NoSlot>
}

interface Waiting extends Timed {
  readonly caller: Caller
  resolve(outcome: Release | NoSlot): void
}

interface Share {
  active: number
  readonly waiting: Waiting[]
}

export function createSlots(most: number, mostOfOne: number, deadlines: Deadlines): Slots {
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
      if (active >= most) return
      if (share.active >= mostOfOne) continue
      const next = takeFirst(share)
      if (!next) {
        if (share.active === 0) shares.delete(holder)
        continue
      }
      shares.delete(holder)
      shares.set(holder, share)
      next.resolve(start(holder, share))
      return
    }
  }

  function takeFirst({ waiting }: Share): Waiting | undefined {
    for (let it = waiting[0]; it; it = waiting[0]) {
      leave(waiting, it)
      if (!it.caller.connection.destroyed) return it
      it.resolve('late')
    }
    return undefined
  }

  function leave(waiting: Waiting[], it: Waiting): void {
    waiting.splice(waiting.indexOf(it), 1)
    waitingCount -= 1
    deadlines.delete(it)
  }

  function wait(caller: Caller, share: Share, timeoutMs: number): Promise<Release | NoSlot> {
    return new Promise(resolve => {
      const waiting: Waiting = {
        caller,
        resolve,
        deadline: performance.now() + timeoutMs,
        index: -1,
        expire() {
          leave(share.waiting, waiting)
          if (share.active === 0 && share.waiting.length === 0) shares.delete(caller.holder)
          resolve('late')
        },
      }
      share.waiting.push(waiting)
      waitingCount += 1
      deadlines.add(waiting)
    })
  }

  return {
    take(caller, timeoutMs) {
      const share = getShare(caller.holder)
      if (active < most && share.active < mostOfOne) return start(caller.holder, share)
      if (share.waiting.length >= UPSTREAM_WAITING_PER_GRANT) return 'crowded'
      return wait(caller, share, timeoutMs)
    },
  }
}
