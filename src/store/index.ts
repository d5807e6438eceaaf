/**
 * Opens the database that `database-url` names (SQLite or PostgreSQL), migrates it, deletes expired rows, and
 * hashes or encrypts secrets. It writes the audit trail (`trail.ts`). It contains no queries of other modules: each module has its own queries on `Store`.
 */
export { DatabaseUnavailable } from '../sqlite/index.ts'
export {
  describeUnavailable,
  isDatabaseUnavailable,
  makeSpaceText,
  watchAvailability,
} from './availability.ts'
export {
  cutPage,
  formatPosition,
  type Position,
  parseNumberedPosition,
  parsePosition,
  readAfter,
} from './keyset.ts'
export { migrate } from './migrate.ts'
export { type Migration, runScript } from './migration.ts'
export { inspectDatabase, openStore } from './open-store.ts'
export { countPendingRows, limitPendingRows } from './pending-rows.ts'
export type { Instant, Schema } from './schema.ts'
export {
  createRandomToken,
  createSealer,
  isSameText,
  type SealedFor,
  type Sealer,
  sha256,
} from './sealer.ts'
export type { Store, StoreOptions } from './store.ts'
export {
  containsText,
  type DatabaseTarget,
  lockRows,
  makeFolder,
  parseDatabaseUrl,
  prepareInsert,
  prepareQuery,
} from './store.ts'
export {
  isPresent,
  type JobOptions,
  REFRESH_RETRY_MS,
  REMOVED,
  removeUntil,
  repeatInOneProcess,
  revokeGrantTokens,
  startSweeping,
  sweep,
} from './sweep.ts'
