import { after, before, describe } from 'node:test'
import { fileURLToPath } from 'node:url'
import { stopTracking } from './error-tracking.ts'
import { limitFile } from './file-limit.ts'

/** Runs test files one after another in this process. Each is a suite, so that its hooks are for its own tests only. */
export function runGroup(urls: readonly string[]): void {
  let loading = urls.length
  for (const url of urls) {
    const file = fileURLToPath(url)
    describe(file, async () => {
      before(() => limitFile(file))
      await import(url)
      loading -= 1
      if (loading === 0) stopTracking()
    })
  }
  after(() => limitFile('the group'))
}
