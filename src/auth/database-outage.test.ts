import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { postgresDatabases } from '../../test/support/databases.ts'
import { createAuditor } from '../audit/index.ts'
import { openStore, type Store } from '../store/index.ts'
import { TestAuthServer } from './testing/test-auth-server.ts'
import type { TestBrowser } from './testing/test-browser.ts'

/** A TCP proxy of the real PostgreSQL that a test can stop and start. */
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
  const cut = () => {
    for (const socket of sockets) socket.destroy()
    return new Promise<void>(done => server.close(() => done()))
  }
  return { port, cut, join: () => listen(port) }
}

describe('the auth server without its database', () => {
  const { create, remove } = postgresDatabases()
  let wire: Awaited<ReturnType<typeof wireTo>>
  let store: Store
  let auth: TestAuthServer
  let browser: TestBrowser
  before(async () => {
    const url = new URL(await create())
    wire = await wireTo(url)
    const through = new URL(url)
    through.host = `127.0.0.1:${wire.port}`
    store = await openStore(through.href, { clock: () => auth?.time.now ?? 0 })
    auth = await TestAuthServer.open(store)
    browser = await auth.logIn()
  })
  after(async () => {
    await store.close()
    await wire.cut()
    await remove()
  })

  it('responds with 503 as a page or as JSON, and recovers (HTTP-9)', async () => {
    const code = await auth.getCode(browser)
    await wire.cut()
    for (const path of ['/portal', '/login?interaction=x', '/oauth2/authorize?client_id=x']) {
      const page = await browser.get(path)
      assert.equal(page.statusCode, 503, path)
      assert.match(String(page.headers['content-type']), /^text\/html/)
      assert.match(page.body, /temporarily unavailable/)
    }
    assert.equal((await auth.openBrowser().login()).statusCode, 503)
    const token = await auth.exchange(code)
    assert.equal(token.statusCode, 503)
    assert.equal(token.json().error, 'temporarily_unavailable')
    assert.equal(token.headers['retry-after'], '2')
    assert.equal(token.headers['cache-control'], 'no-store')
    const ready = await browser.get('/readyz')
    assert.equal(ready.statusCode, 503)
    const [database] = ready.json().checks
    assert.deepEqual(database, {
      name: 'database',
      ok: false,
      reason: 'unavailable; see the log',
    })
    assert.doesNotMatch(ready.body, new RegExp(`${wire.port}|127\\.|postgres`))
    // The key set needs no database.
    assert.equal((await browser.get('/oauth2/jwks')).statusCode, 200)
    assert.equal((await browser.get('/healthz')).statusCode, 200)

    await wire.join()
    auth.time.now += 2000
    assert.equal((await browser.get('/portal')).statusCode, 200)
    assert.equal((await auth.exchange(code)).statusCode, 200)
    auth.time.now += 2000
    assert.equal((await browser.get('/readyz')).statusCode, 200)
  })
})

describe('the auth server on a full disk', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
  after(() => rmSync(folder, { recursive: true, force: true }))

  it('is not ready while the disk has room for a probe and for no request, and recovers (START-4)', async () => {
    let auth: TestAuthServer | undefined
    const store = await openStore(`sqlite:${join(folder, 'full.db')}`, { clock: () => auth?.time.now ?? 0 })
    auth = await TestAuthServer.open(store, { audit: createAuditor({ store }) })
    const limitPages = (more: number) =>
      store.db.transaction().execute(async trx => {
        const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(trx)
        await sql.raw(`pragma max_page_count = ${Number(rows[0]?.page_count) + more}`).execute(trx)
      })
    const state = 's'.repeat(4_000)
    const isReady = async () => (await auth.openBrowser().get('/readyz')).statusCode === 200
    assert.equal(await isReady(), true)
    await limitPages(2)
    let asked = await auth.authorize(auth.openBrowser(), { state })
    for (let count = 0; count < 20 && asked.statusCode < 500; count++)
      asked = await auth.authorize(auth.openBrowser(), { state })
    assert.equal(asked.statusCode, 503, 'no page is left')
    for (let checks = 0; checks < 3; checks++) {
      auth.time.now += 2_000
      const ready = await auth.openBrowser().get('/readyz')
      assert.equal(ready.statusCode, 503)
      assert.deepEqual(ready.json().checks[0], { name: 'database', ok: false, reason: 'its disk is full' })
    }
    // The store refuses statements while the disk is full: another connection lifts nothing, a new one has no limit.
    await store.close()
    const reopened = await openStore(`sqlite:${join(folder, 'full.db')}`)
    const again = await TestAuthServer.open(reopened)
    assert.equal((await again.openBrowser().get('/readyz')).statusCode, 200)
    const { rows } = await sql`select job from lease where job like 'space %'`.execute(reopened.db)
    assert.deepEqual(rows, [])
    await reopened.close()
  })
})
