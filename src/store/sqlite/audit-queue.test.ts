import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, afterEach, beforeEach, describe, it, mock } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { isDatabaseUnavailable } from '../availability.ts'
import { openStore } from '../open-store.ts'
import type { Store } from '../store.ts'
import { Connection, runAndCommit } from './database-file.ts'
import { listQueueFiles, moveBatch } from './move-records.ts'
import { nameQueueFolder } from './queue-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'audit-queue-'))
after(() => rmSync(folder, { recursive: true }))

const HOUR = 3_600_000
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
  afterEach(async () => {
    mock.timers.reset()
    await Promise.all(stores.map(store => store.close()))
  })

  async function addEach(store: Store, count: number): Promise<void> {
    for (let at = 0; at < count; at++) await store.appendRecords([row(at)])
  }

  async function refuseRecords({ db }: Store): Promise<void> {
    await sql`create trigger refuse before insert on audit_event when new.kind <> 'probe' begin select raise(abort, 'refused'); end`.execute(
      db,
    )
  }

  async function listTimes({ db }: Store): Promise<readonly number[]> {
    const rows = await db.selectFrom('audit_event').select('at').orderBy('at').execute()
    return rows.map(({ at }) => at)
  }

  const listNumbers = (count: number) => Array.from({ length: count }, (_, at) => at)
  const listFiles = () => listQueueFiles(nameQueueFolder(path))
  const firstFile = () => listFiles()[0] ?? assert.fail('There is no file')

  function countInTrail(): unknown {
    const file = new DatabaseSync(path)
    const found = file.prepare('select count(*) as count from audit_event').get()
    file.close()
    return found?.count
  }

  it('holds records until a query uses the trail', async () => {
    const store = await open(1)
    await addEach(store, 3)
    assert.equal(countInTrail(), 0)
    assert.deepEqual(await listTimes(store), [0, 1, 2])
    await store.appendRecords([row(3)])
    assert.deepEqual(await listTimes(store), [0, 1, 2, 3])
  })

  it('is emptied into the trail without a query', async () => {
    const store = await open()
    await store.appendRecords([row(1)])
    while (countInTrail() === 0) await pause(20)
    assert.equal(countInTrail(), 1)
  })

  it('is emptied into the trail when the store closes, and leaves no file', async () => {
    const store = await openStore(`sqlite:${path}`, { worker: 1 })
    await store.appendRecords([row(1)])
    await store.close()
    assert.equal(countInTrail(), 1)
    assert.deepEqual(listFiles(), [])
    await assert.rejects(store.appendRecords([row(2)]), isDatabaseUnavailable)
  })

  it('is emptied by a thread if it holds many records', async () => {
    const store = await open(1)
    await store.appendRecords(listNumbers(3000).map(row))
    assert.deepEqual(await listTimes(store), listNumbers(3000))
  })

  it('loses no record if the trail refuses it for a while, in the process or in a thread', async () => {
    const store = await open(1)
    for (const count of [1, 3000]) {
      await refuseRecords(store)
      await store.appendRecords(listNumbers(count).map(row))
      await assert.rejects(listTimes(store), /refused/)
      assert.equal(countInTrail(), 0)
      await sql`drop trigger refuse`.execute(store.db)
      assert.deepEqual(await listTimes(store), listNumbers(count))
      await store.db.deleteFrom('audit_event').execute()
    }
  })

  it('moves each record once if a process ends while it moves records', async () => {
    const store = await open(1)
    await addEach(store, 3)
    const trail = new Connection(path)
    trail.write('begin immediate')
    runAndCommit(trail, () => moveBatch(trail, firstFile(), 2))
    trail.close()
    assert.equal(countInTrail(), 2)
    assert.deepEqual(await listTimes(store), [0, 1, 2])
  })

  it('moves records of a process that has ended, and of several that move at once', async () => {
    const [first, second] = [await open(1), await open(2)]
    await Promise.all([addEach(first, 20), addEach(second, 20)])
    const others = await Promise.all([open(), open(), open(3)])
    const counts = await Promise.all(
      [...others, first, second].map(async store => (await listTimes(store)).length),
    )
    assert.deepEqual(counts, [40, 40, 40, 40, 40])
  })

  it('removes the file of a killed process, with an incomplete record, two hours after its creation', async () => {
    const store = await open(1)
    await store.appendRecords([row(1)])
    const killed = firstFile()
    appendFileSync(killed, '{"at":2')
    const reader = await open(2)
    assert.deepEqual(await listTimes(reader), [1])
    assert.ok(existsSync(killed))
    mock.timers.enable({ apis: ['Date'], now: Date.now() + 2 * HOUR + 1 })
    assert.deepEqual(await listTimes(reader), [1])
    assert.ok(!existsSync(killed))
  })

  it('continues in a new file after an hour, and if its file or folder was deleted or replaced', async () => {
    const store = await open(1)
    const changes = [
      () => mock.timers.enable({ apis: ['Date'], now: Date.now() + HOUR }),
      () => rmSync(firstFile()),
      () => rmSync(nameQueueFolder(path), { recursive: true }),
      () => {
        const file = firstFile()
        rmSync(file)
        writeFileSync(file, '')
      },
    ]
    for (const [at, change] of changes.entries()) {
      await store.appendRecords([row(2 * at)])
      await listTimes(store)
      change()
      await store.appendRecords([row(2 * at + 1)])
    }
    assert.deepEqual(await listTimes(store), listNumbers(8))
  })

  it('continues in a new file after 16 MB, and removes the full one', async () => {
    const store = await open(1)
    const long = { ...row(1), request: 'x'.repeat(4_200_000) }
    for (let count = 0; count < 5; count++) await store.appendRecords([long])
    assert.equal(listFiles().length, 2)
    assert.equal((await listTimes(store)).length, 5)
    assert.equal(listFiles().length, 1)
  })

  for (const line of ['{"at":\0\0}', '{"at":1}', 'null'])
    it(`keeps the rest of a damaged file, and moves all other records: ${JSON.stringify(line)}`, async () => {
      const store = await open(1)
      await addEach(store, 2)
      const damaged = firstFile()
      appendFileSync(damaged, `${line}\n`)
      await store.appendRecords([row(2)])
      await assert.rejects(listTimes(store), /is damaged at byte \d+\. It is kept/)
      await store.appendRecords([row(3)])
      assert.deepEqual(await listTimes(store), [0, 1, 3])
      assert.match(readFileSync(`${damaged}.damaged`, 'utf8'), /"at":2/)
    })

  it('reports once why records stay in it', async () => {
    const reports: unknown[] = []
    const store = await openStore(`sqlite:${path}`, { onStuckRecords: error => reports.push(String(error)) })
    stores.push(store)
    await refuseRecords(store)
    await store.appendRecords([row(1)])
    while (reports.length === 0) await pause(20)
    await pause(400)
    assert.deepEqual(reports, ['Error: refused'])
  })

  it('refuses a record whose file is removed during the write', async () => {
    const store = await open(1)
    await store.appendRecords([row(1)])
    assert.deepEqual(await listTimes(store), [1])
    const adding = store.appendRecords([row(2)])
    for (let tasks = 0; tasks < 50; tasks++) await undefined
    rmSync(firstFile())
    await assert.rejects(adding, isDatabaseUnavailable)
    await store.appendRecords([row(3)])
    assert.deepEqual(await listTimes(store), [1, 3])
  })

  it('removes the records of a write that failed in the middle', async () => {
    await (await openStore(`sqlite:${path}`)).close()
    const program = `
      const { createQueueWriter } = await import(${JSON.stringify(new URL('./queue-file.ts', import.meta.url))})
      const writer = createQueueWriter(${JSON.stringify(nameQueueFolder(path))}, { onFull: async () => {} })
      const row = at => ({ at, server: 'fhir', kind: 'fhir', allowed: true, status: 200 })
      const add = at => writer.add(Array.from({ length: 30 }, () => row(at)))
      await add(1)
      await add(2).then(() => process.exit(1), () => {})
      await add(3)`
    const { status, stderr } = spawnSync(
      'sh',
      [
        '-c',
        'trap "" XFSZ; ulimit -f 6; exec "$0" "$@"',
        process.execPath,
        '--input-type=module',
        '--eval',
        program,
      ],
      { encoding: 'utf8' },
    )
    assert.equal(status, 0, stderr)
    const times = await listTimes(await open(2))
    assert.deepEqual(
      Map.groupBy(times, at => at)
        .keys()
        .toArray(),
      [1, 3],
    )
    assert.equal(times.length, 60)
  })

  it('moves no record to a database that was replaced', async () => {
    const store = await openStore(`sqlite:${path}`, { worker: 1 })
    await store.appendRecords([row(1)])
    for (const end of ['', '-wal', '-shm']) renameSync(`${path}${end}`, `${path}-old${end}`)
    const restarted = await open(2)
    await assert.rejects(listTimes(store), /was replaced/)
    await store.close()
    assert.deepEqual(await listTimes(restarted), [1])
  })

  it('adds no record twice that a restored backup has in the queue and in the trail', async () => {
    const store = await openStore(`sqlite:${path}`)
    await addEach(store, 3)
    const file = firstFile()
    const content = readFileSync(file)
    await store.close()
    assert.deepEqual(listFiles(), [])
    writeFileSync(file, content)
    assert.deepEqual(await listTimes(await open(2)), [0, 1, 2])
  })

  it('moves each record once after the computer slept for longer than positions are kept', async () => {
    const sleepers = [await open(1), await open(2)]
    for (const [at, store] of sleepers.entries()) await store.appendRecords([row(at)])
    const reader = await open(3)
    assert.deepEqual(await listTimes(reader), [0, 1])
    mock.timers.enable({ apis: ['Date'], now: Date.now() + 8 * 24 * HOUR })
    for (const [at, store] of sleepers.entries()) await store.appendRecords([row(at + 2)])
    assert.deepEqual(await listTimes(reader), [0, 1, 2, 3])
  })

  it('accepts no record that the trail would refuse', async () => {
    const store = await open()
    const bad = { ...row(2), status: null as unknown as number }
    await assert.rejects(store.appendRecords([row(1), bad]), /no status/)
    assert.deepEqual(await listTimes(store), [])
  })

  it('refuses records while it cannot be written, and the store is not ready', async () => {
    let now = 0
    const store = await openStore(`sqlite:${path}`, { worker: 1, clock: () => now })
    stores.push(store)
    await store.appendRecords([row(1)])
    await store.ping()
    const queue = nameQueueFolder(path)
    renameSync(queue, `${queue}-away`)
    writeFileSync(queue, '')
    await assert.rejects(store.appendRecords([row(2)]), isDatabaseUnavailable)
    await assert.rejects(listTimes(store), isDatabaseUnavailable)
    now += 2000
    await assert.rejects(store.ping(), isDatabaseUnavailable)
    rmSync(queue)
    renameSync(`${queue}-away`, queue)
    now += 2000
    await store.ping()
    await store.appendRecords([row(3)])
    assert.deepEqual(await listTimes(store), [1, 3])
  })

  it('has files that other users cannot read', async () => {
    const store = await open(1)
    await store.appendRecords([row(1)])
    assert.equal(statSync(firstFile()).mode & 0o777, 0o600)
    assert.equal(statSync(nameQueueFolder(path)).mode & 0o777, 0o700)
  })
})
