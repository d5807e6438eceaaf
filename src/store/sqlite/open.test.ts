import assert from 'node:assert/strict'
import { mkdtempSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, it, type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { openStore, type Store } from '../index.ts'
import { migrateStore } from '../open-store.ts'
import { openSqlite } from './open.ts'

const insertUser = ({ db }: Store, username: string) =>
  db
    .insertInto('clinician')
    .values({ username, password_hash: 'hash', display_name: 'Ada', fhir_user_id: 'p' })
    .execute()

/** Runs `before` each time that a file is flushed. */
async function spyOnFlush(t: TestContext, before: () => Promise<void>) {
  const file = await open(import.meta.filename)
  await file.close()
  const handles: Pick<FileHandle, 'datasync'> = Object.getPrototypeOf(file)
  const { datasync } = handles
  return t.mock.method(handles, 'datasync', async function (this: FileHandle) {
    await before()
    await datasync.call(this)
  }).mock
}

describe('openSqlite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
  after(() => rmSync(folder, { recursive: true, force: true }))

  it('creates the folder and a file that only this user can read', async () => {
    const path = join(folder, 'new', 'sallyport.db')
    await (await openStore(`sqlite:${path}`)).close()
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.equal(statSync(join(folder, 'new')).mode & 0o777, 0o700)
  })

  it('has the same records by the name of the file and by a link to it', async () => {
    const [path, link] = [join(folder, 'linked.db'), join(folder, 'link.db')]
    const first = await openStore(`sqlite:${path}`, { worker: 1 })
    await first.trail.append([{ at: 1, server: 'fhir', kind: 'fhir', allowed: true, status: 200 }])
    symlinkSync(path, link)
    const second = await openStore(`sqlite:${link}`)
    const found = await (await second.trail.read()).selectFrom('audit_event').select('at').execute()
    assert.deepEqual(found, [{ at: 1 }])
    await Promise.all([first.close(), second.close()])
  })

  it('names the file that cannot be opened', async () => {
    writeFileSync(join(folder, 'text.db'), 'this is no database, however long it is made')
    await assert.rejects(
      openStore(`sqlite:${folder}/text.db`),
      /Cannot open database .*text.db: .*not a database/,
    )
    await assert.rejects(
      openStore(`sqlite:${folder}/text.db/x.db`),
      /Cannot open database .*x.db: .*(EEXIST|ENOTDIR)/,
    )
  })

  it('acknowledges commits when the log is on disk, and concurrent ones share a flush', async t => {
    const store = await openStore(`sqlite:${folder}/durable.db`)
    await insertUser(store, 'ada')
    const { promise: disk, resolve: finish } = Promise.withResolvers<void>()
    const flushes = await spyOnFlush(t, () => disk)
    const writes = ['bea', 'cyd', 'dot', 'eve'].map(name => insertUser(store, name))
    assert.equal(await Promise.race([...writes, pause(30).then(() => 'waits')]), 'waits')
    assert.equal((await store.db.selectFrom('clinician').select('id').execute()).length, 5)
    finish()
    await Promise.all(writes)
    assert.equal(flushes.callCount(), 2)
    await store.close()
  })

  it('rejects a transaction whose log cannot be flushed, and leaves the next transaction alone', async t => {
    const store = await openStore(`sqlite:${folder}/failing.db`)
    await insertUser(store, 'ada')
    const flushes = await spyOnFlush(t, () => Promise.reject(new Error('EIO')))
    const failing = store.db.transaction().execute(() => Promise.resolve())
    const { promise: isFlushed, resolve: finish } = Promise.withResolvers<void>()
    const next = store.db.transaction().execute(async trx => {
      await trx.deleteFrom('clinician').execute()
      await isFlushed
    })
    await assert.rejects(failing, /its log cannot be flushed/)
    flushes.restore()
    finish()
    await next
    assert.deepEqual(await store.db.selectFrom('clinician').select('id').execute(), [])
    await store.close()
  })

  it('writes to a log with checks of foreign keys', async () => {
    const store = await openStore(`sqlite:${folder}/pragmas.db`)
    const pragma = async (name: string) =>
      Object.values(
        (await sql<Record<string, unknown>>`pragma ${sql.raw(name)}`.execute(store.db)).rows[0] ?? {},
      )[0]
    assert.equal(await pragma('journal_mode'), 'wal')
    assert.equal(await pragma('foreign_keys'), 1)
    await store.close()
  })

  it('waits for another process that writes, without blocking this one', async () => {
    const store = await openStore(`sqlite:${folder}/busy.db`)
    const other = new DatabaseSync(join(folder, 'busy.db'))
    other.exec('begin immediate')
    const written = insertUser(store, 'ada').then(() => 'written')
    // The timer fires although the write waits: the event loop is free.
    assert.equal(await Promise.race([written, pause(60).then(() => 'waits')]), 'waits')
    other.exec('commit')
    other.close()
    assert.equal(await written, 'written')
    await store.close()
  })

  it('rejects the ping with the path if the file was deleted or replaced, and recovers when it is restored', async () => {
    const path = join(folder, 'gone.db')
    const store = await openStore(`sqlite:${path}`)
    renameSync(path, `${path}.moved`)
    await assert.rejects(store.ping(), new RegExp(`Cannot use database ${path}: the file was deleted`))
    writeFileSync(path, '')
    await assert.rejects(store.ping(), /the file was replaced; restart/)
    renameSync(`${path}.moved`, path)
    await store.ping()
    await store.close()
  })

  it('rejects a write through the store inside a transaction after a time limit, and continues', async () => {
    const store = await openSqlite(`${folder}/nested.db`, { writeWaitMs: 50 })
    await migrateStore(store)
    const nested = store.db.transaction().execute(() => insertUser(store, 'ada'))
    await assert.rejects(nested, /Cannot write to database: no turn within 50 ms/)
    await insertUser(store, 'bea')
    await store.close()
  })
})
