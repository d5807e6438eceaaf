import { Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import type { Schema } from '../schema.ts'
import type { OpenedDatabase } from '../store.ts'
import { DatabaseUnavailable } from '../unavailable.ts'

const PING_MS = 2000

/** Opens a pool. Connections are made when they are needed, so a server that was away is found again by itself. */
export async function openPostgres(url: string): Promise<OpenedDatabase> {
  const pool = new pg.Pool({
    connectionString: url,
    max: 10,
    connectionTimeoutMillis: 5000,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    application_name: 'sallyport',
    statement_timeout: 15_000,
    query_timeout: 20_000,
    idle_in_transaction_session_timeout: 15_000,
    types: { getTypeParser },
  })
  // A connection that breaks while nobody awaits it says so by an event; unheard, that would end the process. The pool
  // drops the connection, and a query that was under way is rejected by itself.
  pool.on('error', () => {})
  pool.on('connect', client => client.on('error', () => {}))
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) })
  return {
    db,
    dialect: 'postgres',
    ping: () => inTime(sql`select 1`.execute(db)),
    append: (table, rows) => append(pool, table, rows),
    close: () => db.destroy(),
  }
}

// Instants and counts are far below 2^53: a number, as on SQLite, and not a text.
function getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
  if (oid === pg.types.builtins.INT8 && format !== 'binary') return Number
  return pg.types.getTypeParser(oid, format as 'text')
}

/** One statement, whose text does not change with the number of rows, and so one commit. */
async function append(
  pool: pg.Pool,
  table: string,
  rows: readonly Readonly<Record<string, unknown>>[],
): Promise<void> {
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
    () => reject(new DatabaseUnavailable(`Cannot reach database: no answer in ${PING_MS} ms`)),
    PING_MS,
  )
  answer.catch(() => {})
  try {
    await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}
