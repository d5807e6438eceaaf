import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, afterEach, beforeEach, describe, it } from 'node:test'
import { sql } from 'kysely'
import { isDatabaseUnavailable } from '../availability.ts'
import { openStore } from '../open-store.ts'
import type { Store } from '../store.ts'
import { Connection, runAndCommit } from './database-file.ts'
import { findWaiting, moveBatch, nameQueue, readName } from './move-records.ts'

const folder = mkdtempSync(join(tmpdir(), 'audit-queue-'))
after(() => rmSync(folder, { recursive: true }))

const row = (at: number) => ({ at, server: 'fhir' as const, kind: 'fhir', allowed: true, status: 200 })

describe('the queue of audit records', () => {
  let databases = 0
  let path: string
  let stores: Store[]

  /** A worker does not move records on its own. */
  async function open(worker?: number): Promise<Store> {
    const store = await openStore(`sqlite:${path}`, worker === undefined ? {} : { worker })
    stores.push(store)
    return store
  }

  beforeEach(() => {
    path = join(folder, `${databases++}.db`)
    stores = []
  })
  afterEach(() => Promise.all(stores.map(store => store.close())))

  async function addGroups(store: Store, count: number): Promise<void> {
    for (let at = 0; at < count; at++) await store.appendRecords([row(at)])
  }

  async function listTimes({ db }: Store): Promise<readonly number[]> {
    const rows = await db.selectFrom('audit_event').select('at').orderBy('at').execute()
    return rows.map(({ at }) => at)
  }

  const listNumbers = (count: number) => Array.from({ length: count }, (_, at) => at)

  function countWaiting(worker = 1): number {
    const queue = new Connection(nameQueue(path, worker))
    const { groups } = findWaiting(queue)
    queue.close()
    return groups
  }

  it('has the records that are not yet in the trail', async () => {
    const store = await open(1)
    await addGroups(store, 3)
    assert.equal(countWaiting(), 3)
    assert.deepEqual(await listTimes(store), [0, 1, 2])
    assert.equal(countWaiting(), 0)
  })

  it('is emptied into the trail without a query', async () => {
    const store = await open()
    await store.appendRecords([row(1)])
    while (countWaiting() > 0) await new Promise(resolve => setTimeout(resolve, 20))
    const file = new DatabaseSync(path)
    assert.deepEqual(file.prepare('select count(*) as count from audit_event').get()?.count, 1)
    file.close()
  })

  it('is emptied into the trail when the store closes', async () => {
    const store = await openStore(`sqlite:${path}`, { worker: 1 })
    await store.appendRecords([row(1)])
    await store.close()
    assert.equal(countWaiting(), 0)
  })

  it('has many records moved by a thread', async () => {
    const store = await open(1)
    await addGroups(store, 150)
    assert.deepEqual(await listTimes(store), listNumbers(150))
    assert.equal(countWaiting(), 0)
  })

  it('loses no record if the trail refuses it for a while, in the process or in a thread', async () => {
    const store = await open(1)
    for (const count of [1, 150]) {
      await sql`create trigger refuse before insert on audit_event when new.kind <> 'probe' begin select raise(abort, 'refused'); end`.execute(
        store.db,
      )
      await addGroups(store, count)
      await assert.rejects(listTimes(store), /refused/)
      assert.equal(countWaiting(), count)
      await sql`drop trigger refuse`.execute(store.db)
      assert.deepEqual(await listTimes(store), listNumbers(count))
      await store.db.deleteFrom('audit_event').execute()
    }
  })

  it('moves each record once if a process ends before it removes moved records', async () => {
    const store = await open(1)
    await addGroups(store, 3)
    const [trail, queue] = [new Connection(path), new Connection(nameQueue(path, 1))]
    trail.write('begin immediate')
    runAndCommit(trail, () => void moveBatch(trail, queue, { name: readName(queue), end: 2, most: 100 }))
    trail.close()
    queue.close()
    assert.equal(countWaiting(), 3)
    assert.deepEqual(await listTimes(store), [0, 1, 2])
    assert.equal(countWaiting(), 0)
  })

  it('moves records of a process that has ended, and of several that move at once', async () => {
    const [first, second] = [await open(1), await open(2)]
    await Promise.all([addGroups(first, 20), addGroups(second, 20)])
    const others = await Promise.all([open(), open(), open(3)])
    const counts = await Promise.all(
      [...others, first, second].map(async store => (await listTimes(store)).length),
    )
    assert.deepEqual(counts, [40, 40, 40, 40, 40])
  })

  it('begins again in a new file, with new positions', async () => {
    const first = await openStore(`sqlite:${path}`)
    await addGroups(first, 3)
    await first.close()
    for (const end of ['', '-wal', '-shm']) rmSync(nameQueue(path, 1) + end, { force: true })
    const store = await open()
    await store.appendRecords([row(3)])
    assert.deepEqual(await listTimes(store), [0, 1, 2, 3])
  })

  it('accepts no record that the trail would refuse', async () => {
    const store = await open()
    const bad = { ...row(2), status: null as unknown as number }
    await assert.rejects(store.appendRecords([row(1), bad]), /no status/)
    assert.deepEqual(await listTimes(store), [])
  })

  it('refuses records after its file was deleted, and the store is not ready', async () => {
    const store = await open(1)
    await addGroups(store, 1)
    await listTimes(store)
    rmSync(nameQueue(path, 1))
    await assert.rejects(store.appendRecords([row(1)]), isDatabaseUnavailable)
    await assert.rejects(store.ping(), isDatabaseUnavailable)
  })
})
