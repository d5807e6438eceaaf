import assert from 'node:assert/strict'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { postgresDatabases } from '../../test/support/databases.ts'
import { query } from '../../test/support/postgres.ts'
import { openStore } from './index.ts'
import { migrations } from './migrations/index.ts'
import { migrateStore } from './open-store.ts'

async function wireTo(url: URL) {
  const sockets = new Set<Socket>()
  const server = createServer(near => {
    const far = connect(Number(url.port || 5432), url.hostname)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    near.pipe(far).pipe(near)
  })
  const listen = (port: number) => new Promise<void>(done => server.listen(port, '127.0.0.1', done))
  await listen(0)
  const { port } = server.address() as AddressInfo
  return {
    port,
    cut: () => {
      for (const socket of sockets) socket.destroy()
      return new Promise<void>(done => server.close(() => done()))
    },
    join: () => listen(port),
  }
}

describe('openPostgres', () => {
  const { create, remove } = postgresDatabases()
  after(remove)

  it('works again when the database recovers', async () => {
    const url = new URL(await create())
    const wire = await wireTo(url)
    const through = new URL(url)
    through.host = `127.0.0.1:${wire.port}`
    let now = 0
    const store = await openStore(through.href, { clock: () => now })
    await store.ping()
    now = 2000

    const cutInside = store.db.transaction().execute(async trx => {
      await trx.selectFrom('client').select('client_id').execute()
      await wire.cut()
      await trx.selectFrom('client').select('client_id').execute()
    })
    await assert.rejects(cutInside)
    await assert.rejects(store.ping())
    await assert.rejects(store.db.selectFrom('client').selectAll().execute())

    await wire.join()
    now = 4000
    await store.ping()
    await store.db.selectFrom('client').selectAll().execute()
    await store.close()
    await wire.cut()
  })

  describe('an upgrade that adds an index', () => {
    const index = { name: 'clinician_display_name', table: 'clinician', of: '(display_name)' }
    const step = { name: '9001-index', needs: '0001-schema', list: () => [], listIndexes: () => [index] }
    const steps = [...migrations, step]
    const insert = (id: string) =>
      `insert into clinician (username, password_hash, display_name, fhir_user_id) values ('${id}', 'hash', 'A clinician', 'p')`
    const listValid = (url: string) =>
      query(url, "select indisvalid from pg_index where indexrelid = to_regclass('clinician_display_name')")

    it('does not stop the writes of other servers (UPGRADE-6)', async () => {
      const url = await create()
      const store = await openStore(url)
      const other = await store.db.startTransaction().execute()
      await sql.raw(insert('first')).execute(other)
      const upgraded = migrateStore(store, steps)
      while (!(await isBuilding(url))) await pause(10)
      await query(url, `set lock_timeout = 1000; ${insert('second')}`)
      await other.commit().execute()
      await upgraded
      assert.deepEqual(await listValid(url), [{ indisvalid: true }])
      await store.close()
    })

    it('builds an index again whose build was interrupted, and once for several instances (UPGRADE-6)', async () => {
      const url = await create()
      const stores = await Promise.all([openStore(url), openStore(url)])
      await query(
        url,
        "create index clinician_display_name on clinician (display_name); update pg_index set indisvalid = false where indexrelid = to_regclass('clinician_display_name')",
      )
      await Promise.all(stores.map(store => migrateStore(store, steps)))
      assert.deepEqual(await listValid(url), [{ indisvalid: true }])
      for (const store of stores) await store.close()
    })

    async function isBuilding(url: string): Promise<boolean> {
      const rows = await query(
        url,
        "select from pg_stat_activity where datname = current_database() and query like 'create index %'",
      )
      return rows.length > 0
    }
  })

  it('names the unreachable server in one line, without the password', async () => {
    const wire = await wireTo(new URL(await create()))
    await wire.cut()
    const unreachable = `postgres://someone:hush@127.0.0.1:${wire.port}/sallyport`
    await assert.rejects(openStore(unreachable), (error: Error) => {
      assert.match(
        error.message,
        /^Cannot open database postgres:\/\/127\.0\.0\.1:\d+\/sallyport: .*ECONNREFUSED/,
      )
      assert.doesNotMatch(error.message, /hush|\n/)
      return true
    })
  })
})
