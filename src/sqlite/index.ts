/**
 * SQLite files, below the store and the embedded FHIR server: connections with their statements, turns and waits of writers,
 * group commit, and the flush of the log. The tables are in `store/migrations` and `backends/sqlite/repository`.
 */
export { insertRows, SqliteConnection, type SqliteRow, type SqlValue } from './connection.ts'
export { commit, type DatabaseFile, openDatabaseFile, writeInTurn } from './database-file.ts'
export { type CommitGroup, GroupCommit } from './group-commit.ts'
export { DatabaseUnavailable } from './unavailable.ts'
export { isBusy, Turns, WRITE_WAIT_MS, WriteWait } from './write-wait.ts'
