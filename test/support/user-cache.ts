import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

/**
 * A folder of the user's cache that `fill` fills once, for every clone on the machine. It is filled under another name and
 * then renamed, so that a second test run never sees half of it.
 */
export function cacheFolder(name: string, fill: (work: string, folder: string) => void): string {
  const folder = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'sallyport', name)
  if (existsSync(folder)) return folder
  mkdirSync(dirname(folder), { recursive: true })
  const work = mkdtempSync(`${folder}-`)
  try {
    fill(work, folder)
    renameSync(work, folder)
  } catch (error) {
    // Another test run may have filled it in the meantime.
    if (!existsSync(folder)) throw error
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  return folder
}
