/** The audit trail in PostgreSQL: the CPU time of this process and of the database's process (on Linux). */
import { readFileSync } from 'node:fs'
import { sql } from 'kysely'
import pg from 'pg'
import { openStore } from '../../src/store/index.ts'
import { startPostgres } from '../../test/support/postgres.ts'
import { fillTrail, openTrail } from './audit/trail.ts'
import { readProcessorTime, type Subject } from './measure.ts'

export const subject: Subject = {
  size: 1_000_000,
  limit: 2,
  async open(size) {
    const postgres = await startPostgres()
    await fill(postgres.url, size)
    const store = await openStore(postgres.url, { poolSize: 1 })
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(store.db)
    const backend = rows[0]?.pid ?? 0
    const { requests } = openTrail(store)
    return {
      requests,
      clock: () => readProcessorTime() + readBackendTime(backend),
      async close() {
        await store.close()
        await postgres.stop()
      },
    }
  },
}

/** Leaves no work of the inserts to the database when the measurement begins. */
async function fill(url: string, size: number): Promise<void> {
  const store = await openStore(url, { statementTimeoutMs: 3_600_000 })
  await fillTrail(store, size)
  await store.close()
  const client = new pg.Client(url)
  await client.connect()
  await client.query('vacuum analyze')
  await client.query('checkpoint')
  await client.end()
}

function readBackendTime(backend: number): number {
  const [ns] = readFileSync(`/proc/${backend}/schedstat`, 'utf8').split(' ')
  return Number(ns) / 1000
}
