import { setTimeout as pause } from 'node:timers/promises'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { DatabaseUnavailable } from '../sqlite/index.ts'
import { listProbeStatements, listSpaceStatements, watchAvailability } from './availability.ts'
import { formatIndex, type Index } from './migration.ts'
import type { Schema } from './schema.ts'
import { type OpenedDatabase, prepareInsert, type StoreOptions } from './store.ts'
import { writeTogether } from './trail.ts'

/** A slow database on a busy machine still responds within this time. */
const PROBE_MS = 3000

/** The pool connects on demand, so it recovers when the database does. */
export async function openPostgres(url: string, options: StoreOptions = {}): Promise<OpenedDatabase> {
  const { poolSize = 10, connectTimeoutMs = 5000, statementTimeoutMs = 15_000 } = options
  const { clock, auditRequired = true } = options
  const pool = openPool({
    connectionString: url,
    max: poolSize,
    connectionTimeoutMillis: connectTimeoutMs,
    statement_timeout: statementTimeoutMs,
    // The server cancels a statement first; this timeout is for a server that does not respond.
    query_timeout: statementTimeoutMs + 1000,
    idle_in_transaction_session_timeout: statementTimeoutMs,
  })
  // A separate connection: a busy pool says nothing about the database.
  const probing = openPool({
    connectionString: url,
    max: 1,
    connectionTimeoutMillis: PROBE_MS,
    query_timeout: PROBE_MS,
  })
  const availability = watchAvailability({
    tryWrite: mayBeFull =>
      inTime(
        tryWrite(probing, [
          listProbeStatements(auditRequired),
          ...(mayBeFull ? listSpaceStatements().map(statement => [statement]) : []),
        ]),
      ),
    whileInUse: true,
    ...(clock && { clock }),
  })
  const db = new Kysely<Schema>({
    dialect: new PostgresDialect({
      pool: {
        options: pool.options,
        connect: () => availability.use(() => pool.connect()),
        end: () => pool.end(),
      },
    }),
    log: event => {
      if (event.level === 'error') availability.report(event.error)
    },
  })
  const append = (table: keyof Schema) =>
    writeTogether<object>(rows => availability.use(() => insert(pool, table, rows)))
  const close = async () => void (await Promise.all([db.destroy(), probing.end()]))
  return {
    db,
    dialect: 'postgres',
    begin: availability.begin,
    buildIndexes: indexes => buildIndexes(url, indexes),
    ping: availability.probe,
    trail: {
      append: append('audit_event'),
      appendIn: async (trx, record) => void (await insertEvent(trx, record)),
      announce: append('audit_intent'),
      read: async () => db,
    },
    pool: () => ({
      idle: pool.idleCount,
      busy: pool.totalCount - pool.idleCount,
      max: poolSize,
      waiting: pool.waitingCount,
    }),
    close,
    [Symbol.asyncDispose]: close,
  }
}

/**
 * The lock of a transaction, because a pooler may give each statement of a session to another connection of the server: a lock of
 * the session would stay behind on one of them. The number is an arbitrary constant: the bytes of "sallyidx".
 */
const TRY_LOCK = 'select pg_try_advisory_xact_lock(8314045600251864184) as locked'
const LOCK_PAUSE_MS = 200

/** On connections of their own, without limits of time: a large table takes minutes. */
async function buildIndexes(url: string, indexes: readonly Index[]): Promise<void> {
  const connection = { connectionString: url, application_name: 'sallyport upgrade' }
  const lock = new pg.Client(connection)
  const client = new pg.Client(connection)
  await Promise.all([lock.connect(), client.connect()])
  try {
    await takeLock(lock)
    for (const index of indexes) await buildIndex(client, index)
    await lock.query('commit')
  } finally {
    await Promise.all([lock.end(), client.end()])
  }
}

/** A statement that waits for the lock would have a snapshot, for whose end the build of another instance waits. */
async function takeLock(lock: pg.Client): Promise<void> {
  for (;;) {
    await lock.query('begin')
    await lock.query('set local idle_in_transaction_session_timeout = 0')
    if ((await lock.query(TRY_LOCK)).rows[0].locked) return
    await lock.query('rollback')
    await pause(LOCK_PAUSE_MS)
  }
}

async function buildIndex(client: pg.Client, index: Index): Promise<void> {
  const { rows } = await client.query(
    `select to_regclass($1) is not null as has_table,
      exists (select from pg_index where indexrelid = to_regclass($2) and not indisvalid) as is_broken`,
    [`"${index.table}"`, index.name],
  )
  // A later migration creates the table.
  if (!rows[0].has_table) return
  // An interrupted build leaves an index that no query uses.
  if (rows[0].is_broken) await client.query(`drop index concurrently ${index.name}`)
  await client.query(`create index concurrently if not exists ${formatIndex(index)}`)
}

/** A failed connection is not reused: after a failover it may lead to a standby. */
async function tryWrite(pool: pg.Pool, transactions: readonly (readonly string[])[]): Promise<void> {
  const client = await pool.connect()
  try {
    for (const statements of transactions)
      for (const statement of ['begin', ...statements, 'commit']) await client.query(statement)
    client.release()
  } catch (error) {
    client.release(true)
    throw error
  }
}

function openPool(config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool({
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    application_name: 'sallyport',
    types: { getTypeParser },
    ...config,
  })
  // A connection that breaks while idle emits an event, which would otherwise end the process. The pool drops the
  // connection, and a running query rejects on its own.
  pool.on('error', () => {})
  pool.on('connect', client => client.on('error', () => {}))
  return pool
}

// Instants and counts are far below 2^53: numbers, as on SQLite.
function getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
  if (oid === pg.types.builtins.INT8 && format !== 'binary') return Number
  return pg.types.getTypeParser(oid, format as 'text')
}

/** The text of the statement does not depend on the number of rows, and there is one commit. */
const insertEvent = prepareInsert('audit_event')

async function insert(pool: pg.Pool, table: string, rows: readonly object[]): Promise<void> {
  const [first] = rows
  if (!first) return
  const columns = Object.keys(first)
    .map(name => `"${name}"`)
    .join(', ')
  await pool.query(
    `insert into "${table}" (${columns}) select ${columns} from json_populate_recordset(null::"${table}", $1::json)`,
    [JSON.stringify(rows)],
  )
}

async function inTime(answer: Promise<unknown>): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new DatabaseUnavailable(`Cannot reach database: no response in ${PROBE_MS} ms`)),
    PROBE_MS,
  )
  answer.catch(() => {})
  try {
    await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}
