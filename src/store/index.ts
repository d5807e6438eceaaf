/**
 * The relational side: opens the database that `database-url` names (SQLite or PostgreSQL), migrates it, removes
 * what has expired, and hashes or seals what must not be readable in it. It holds no queries of the other rooms:
 * they write their own, on `Store`, beside their use.
 */
export { watchAvailability } from './availability.ts'
export { type DatabaseTarget, parseDatabaseUrl } from './database-url.ts'
export { makeFolder } from './folder.ts'
export { openStore } from './open-store.ts'
export { openSealer } from './reseal.ts'
export type { Instant, Schema } from './schema.ts'
export { createSealer, type SealedFor, type Sealer } from './sealer.ts'
export { createRandomToken, isSameText, sha256 } from './secrets.ts'
export type { Store, StoreOptions } from './store.ts'
export { REFRESH_RETRY_MS, startSweeping, sweep } from './sweep.ts'
export { DatabaseUnavailable, describeUnavailable, isDatabaseUnavailable } from './unavailable.ts'
