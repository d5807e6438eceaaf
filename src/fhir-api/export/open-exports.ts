import { remember } from '../../core/index.ts'
import type { Downloads, ExportOptions, Exports } from '../exports.ts'
import { watchConnection } from '../presence.ts'
import type { CallerConnection } from '../request.ts'
import { createExportJobs } from './jobs.ts'
import { EXPORT_DOWNLOADS, EXPORT_DOWNLOADS_WAITING, EXPORT_TURN_MS } from './limits.ts'

export function openExports({ store, ...options }: ExportOptions): Exports {
  return { ...options, jobs: createExportJobs(store, options.sealer), downloads: createDownloads() }
}

interface Share {
  running: number
  readonly waiting: Set<(isTurn: boolean) => void>
}

/** Clients often ask for all files at once. So a download waits for a while until others of the client end. */
export function createDownloads(): Downloads {
  const shares = new Map<string, Share>()
  return {
    async take({ issuer, client }, connection) {
      const key = JSON.stringify([issuer, client])
      const share = remember(shares, key, (): Share => ({ running: 0, waiting: new Set() }))
      const release = () => {
        const [next] = share.waiting
        if (next) return next(true)
        share.running -= 1
        if (share.running === 0) shares.delete(key)
      }
      if (share.running < EXPORT_DOWNLOADS) {
        share.running += 1
        return release
      }
      if (share.waiting.size >= EXPORT_DOWNLOADS_WAITING) return undefined
      return (await waitForTurn(share, connection)) ? release : undefined
    },
  }
}

/** A download that ends gives its place to the one that has waited longest. One whose client leaves waits no longer. */
function waitForTurn({ waiting }: Share, connection: CallerConnection): Promise<boolean> {
  return new Promise(resolve => {
    if (connection.destroyed) return resolve(false)
    const settle = (isTurn: boolean) => {
      waiting.delete(settle)
      clearTimeout(timer)
      stopWatching()
      resolve(isTurn)
    }
    const timer = setTimeout(settle, EXPORT_TURN_MS, false)
    const stopWatching = watchConnection(connection, () => settle(false))
    waiting.add(settle)
  })
}
