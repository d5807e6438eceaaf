/**
 * SQLite files, below the store and the embedded FHIR server: connections with their statements, turns and waits of writers,
 * and the flush of the log. It contains no tables.
 */
export { Connection, insertRows, type Row, runAndCommit, type SqlValue } from './connection.ts'
export { commit, type DatabaseFile, openDatabaseFile } from './database-file.ts'
export { SharedRuns } from './shared-runs.ts'
export { DatabaseUnavailable } from './unavailable.ts'
export { isBusy, Turns, WRITE_WAIT_MS, WriteWait } from './write-wait.ts'
