import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { openSqliteStore } from '../../../test/support/sqlite-store.ts'
import type { Store } from '../../store/index.ts'

/** Opens SQLite stores for tests that are not about the database. Call it inside `describe`. */
export function openTestStore(): () => Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-auth-'))
  const stores: Store[] = []
  after(async () => {
    await Promise.all(stores.map(store => store.close()))
    rmSync(folder, { recursive: true, force: true })
  })
  return async () => {
    const store = await openSqliteStore(`sqlite:${join(folder, `${stores.length}.db`)}`)
    stores.push(store)
    return store
  }
}
