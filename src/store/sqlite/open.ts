import { closeSync, openSync, realpathSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  type QueryResult,
  SelectQueryNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { commit, type DatabaseFile, openDatabaseFile, writeInTurn } from '../../sqlite/index.ts'
import {
  type Availability,
  listProbeStatements,
  listSpaceStatements,
  watchAvailability,
} from '../availability.ts'
import type { Schema } from '../schema.ts'
import { makeFolder, type OpenedDatabase, type StoreOptions } from '../store.ts'
import { openTrail } from './trail.ts'

class SharedSqliteAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true
  }
}

/** Creates the file, readable by this user only, if it does not exist. */
export async function openSqlite(
  path: string,
  options: Pick<StoreOptions, 'writeWaitMs' | 'clock' | 'auditRequired' | 'worker' | 'onStuckRecords'> = {},
): Promise<OpenedDatabase> {
  const { writeWaitMs, clock, auditRequired = true } = options
  makeFolder(dirname(resolve(path)))
  closeSync(openSync(path, 'a', 0o600))
  // SQLite keeps its log beside the file itself, not beside a link to it.
  const absolute = realpathSync(path)
  const file = await openDatabaseFile(absolute, writeWaitMs)
  const availability = watchAvailability({
    tryWrite: mayBeFull => tryWrite(file, auditRequired, mayBeFull),
    ...(clock && { clock }),
  })
  const db = new Kysely<Schema>({
    dialect: {
      createDriver: () => new SqliteDriver(file, availability),
      createQueryCompiler: () => new SqliteQueryCompiler(),
      createAdapter: () => new SharedSqliteAdapter(),
      createIntrospector: kysely => new SqliteIntrospector(kysely),
    },
    log: event => {
      if (event.level === 'error') availability.report(event.error)
    },
  })
  const trail = openTrail(file, { ...options, path: absolute, db, availability })
  const close = async () => {
    await trail.close()
    await db.destroy()
    await file.close()
  }
  return {
    db,
    dialect: 'sqlite',
    trail,
    begin() {
      availability.begin()
      trail.begin()
    },
    ping: async () => {
      file.check()
      await availability.probe()
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function tryWrite(file: DatabaseFile, auditRequired: boolean, mayBeFull: boolean): Promise<void> {
  const run = (statements: string) => commit(file, () => file.writes.exec(statements))
  await run(listProbeStatements(auditRequired).join(';'))
  if (mayBeFull) for (const statement of listSpaceStatements()) await run(statement)
}

/**
 * Kysely's own driver uses one connection, where a query of another request would join a transaction or wait for
 * it. Here, plain reads use a separate connection and see committed data. Everything else takes its turn on the
 * write connection, and a transaction (always `begin immediate`) holds its turn to the end.
 */
class SqliteDriver implements Driver {
  readonly #file: DatabaseFile
  readonly #availability: Availability

  constructor(file: DatabaseFile, availability: Availability) {
    this.#file = file
    this.#availability = availability
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<SqliteSession> {
    await this.#availability.enter()
    return new SqliteSession(this.#file)
  }

  beginTransaction(session: SqliteSession): Promise<void> {
    return session.begin()
  }

  async commitTransaction(session: SqliteSession): Promise<void> {
    try {
      await session.commit()
    } catch (error) {
      this.#availability.report(error)
      throw error
    }
  }

  async rollbackTransaction(session: SqliteSession): Promise<void> {
    session.rollBack()
  }

  async releaseConnection(session: SqliteSession): Promise<void> {
    session.end()
  }

  async destroy(): Promise<void> {}
}

class SqliteSession implements DatabaseConnection {
  readonly #file: DatabaseFile
  #giveBack: (() => void) | undefined

  constructor(file: DatabaseFile) {
    this.#file = file
  }

  async begin(): Promise<void> {
    const wait = this.#file.startWait()
    this.#giveBack = await this.#file.turns.take(wait)
    await wait.retryWhileBusy(() => this.#file.writes.write('begin immediate'))
  }

  /** Other writers continue while the log is flushed. */
  async commit(): Promise<void> {
    this.#file.writes.write('commit')
    this.end()
    await this.#file.flush()
  }

  /** A full disk or an I/O error has already rolled back; after a commit, another transaction may run. */
  rollBack(): void {
    if (this.#giveBack && this.#file.writes.inTransaction) this.#file.writes.write('rollback')
  }

  end(): void {
    this.#giveBack?.()
    this.#giveBack = undefined
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    if (this.#giveBack) return this.#file.writes.run(query)
    if (SelectQueryNode.is(query.query)) return this.#file.reads.run(query)
    return writeInTurn(this.#file, () => this.#file.writes.run(query))
  }

  streamQuery(): never {
    throw new Error('Cannot stream a query: read it in pages')
  }
}
