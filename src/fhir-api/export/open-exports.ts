import type { Downloads, ExportOptions, Exports } from '../exports.ts'
import { createExportJobs } from './jobs.ts'
import { EXPORT_DOWNLOADS } from './limits.ts'

export function openExports({ store, ...options }: ExportOptions): Exports {
  return { ...options, jobs: createExportJobs(store, options.sealer), downloads: countDownloads() }
}

export function countDownloads(): Downloads {
  const counts = new Map<string, number>()
  return {
    take({ issuer, client }) {
      const key = JSON.stringify([issuer, client])
      const count = counts.get(key) ?? 0
      if (count >= EXPORT_DOWNLOADS) return undefined
      counts.set(key, count + 1)
      return () => {
        const left = (counts.get(key) ?? 0) - 1
        if (left > 0) counts.set(key, left)
        else counts.delete(key)
      }
    },
  }
}
