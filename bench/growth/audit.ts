/** The audit trail in SQLite. `--size=5000000` measures three years of a hospital. */
import { join } from 'node:path'
import { openStore } from '../../src/store/index.ts'
import { fillTrail, openTrail } from './audit/trail.ts'
import type { Subject } from './measure.ts'

export const subject: Subject = {
  size: 1_000_000,
  limit: 2,
  async open(size, folder) {
    const store = await openStore(`sqlite:${join(folder, `audit-${size}.db`)}`)
    await fillTrail(store, size)
    return openTrail(store)
  },
}
