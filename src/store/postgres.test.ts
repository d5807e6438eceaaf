import assert from 'node:assert/strict'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, describe, it } from 'node:test'
import { postgresDatabases } from '../../test/support/databases.ts'
import { openStore } from './index.ts'

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
