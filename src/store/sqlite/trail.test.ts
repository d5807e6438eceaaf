import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, afterEach, beforeEach, describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { SqliteConnection } from '../../sqlite/index.ts'
import { isDatabaseUnavailable } from '../availability.ts'
import { openStore } from '../open-store.ts'
import type { Store } from '../store.ts'
import { moveBatch } from './move-batch.ts'

const folder = mkdtempSync(join(tmpdir(), 'audit-waiting-'))
after(() => rmSync(folder, { recursive: true }))

const row = (at: number) => ({ at, server: 'fhir' as const, kind: 'fhir', allowed: true, status: 200 })

describe('audit records that wait for the trail', () => {
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

  async function addEach(store: Store, count: number): Promise<void> {
    for (let at = 0; at < count; at++) await store.trail.append([row(at)])
  }

  async function refuseRecords({ db }: Store): Promise<void> {
    await sql`create trigger refuse before insert on audit_event when new.kind <> 'probe' begin select raise(abort, 'refused'); end`.execute(
      db,
    )
  }

  async function listTimes({ trail }: Store): Promise<readonly number[]> {
    const db = await trail.read()
    const rows = await db.selectFrom('audit_event').select('at').orderBy('at').execute()
    return rows.map(({ at }) => at)
  }

  const listNumbers = (count: number) => Array.from({ length: count }, (_, at) => at)

  function count(table: 'audit_event' | 'audit_waiting', file = path): unknown {
    const database = new DatabaseSync(file)
    const found = database.prepare(`select count(*) as count from ${table}`).get()
    database.close()
    return found?.count
  }

  it('are moved before the trail is read', async () => {
    const store = await open(1)
    await addEach(store, 3)
    assert.deepEqual([count('audit_waiting'), count('audit_event')], [3, 0])
    assert.deepEqual(await listTimes(store), [0, 1, 2])
    assert.deepEqual([count('audit_waiting'), count('audit_event')], [0, 3])
    await store.trail.append([row(3)])
    assert.deepEqual(await listTimes(store), [0, 1, 2, 3])
  })

  it('get ids without gaps, in the order in which they were added', async () => {
    const store = await open(1)
    await addEach(store, 150)
    await assert.rejects(store.trail.append([{ ...row(1), status: null as unknown as number }]))
    await listTimes(store)
    await store.trail.append([row(150)])
    const rows = await (await store.trail.read()).selectFrom('audit_event').select(['id', 'at']).execute()
    assert.deepEqual(
      rows,
      listNumbers(151).map(at => ({ id: at + 1, at })),
    )
  })

  it('are moved without a query', async () => {
    const store = await open()
    await store.trail.append([row(1)])
    while (count('audit_event') === 0) await pause(20)
    assert.equal(count('audit_waiting'), 0)
  })

  it('are moved when the store closes, which accepts no more', async () => {
    const store = await openStore(`sqlite:${path}`, { worker: 1 })
    await store.trail.append([row(1)])
    await store.close()
    assert.deepEqual([count('audit_waiting'), count('audit_event')], [0, 1])
    await assert.rejects(store.trail.append([row(2)]), isDatabaseUnavailable)
  })

  it('are moved by a thread if there are many', async () => {
    const store = await open(1)
    await store.trail.append(listNumbers(3000).map(row))
    assert.deepEqual(await listTimes(store), listNumbers(3000))
  })

  it('stay if the trail refuses them for a while, in the process or in a thread', async () => {
    const store = await open(1)
    for (const size of [1, 3000]) {
      await refuseRecords(store)
      await store.trail.append(listNumbers(size).map(row))
      await assert.rejects(listTimes(store), /refused/)
      assert.deepEqual([count('audit_waiting'), count('audit_event')], [size, 0])
      await sql`drop trigger refuse`.execute(store.db)
      assert.deepEqual(await listTimes(store), listNumbers(size))
      await store.db.deleteFrom('audit_event').execute()
    }
  })

  it('are moved once if a process ends while it moves them (AUDIT-22)', async () => {
    const store = await open(1)
    await addEach(store, 3)
    const connection = new SqliteConnection(path)
    assert.equal(
      connection.transaction(() => moveBatch(connection, 2)),
      2,
    )
    connection.write('begin immediate')
    moveBatch(connection, 2)
    connection.close()
    assert.equal(count('audit_event'), 2)
    assert.deepEqual(await listTimes(store), [0, 1, 2])
  })

  it('are moved once if several processes move them at once', async () => {
    const [first, second] = [await open(1), await open(2)]
    await Promise.all([addEach(first, 20), addEach(second, 20)])
    const others = await Promise.all([open(), open(), open(3)])
    const counts = await Promise.all(
      [...others, first, second].map(async store => (await listTimes(store)).length),
    )
    assert.deepEqual(counts, [40, 40, 40, 40, 40])
  })

  it('are all in the trail, each once, after a process was killed while it added and moved them (AUDIT-22)', async () => {
    await (await openStore(`sqlite:${path}`)).close()
    const program = `
      const { openStore } = await import(${JSON.stringify(new URL('../open-store.ts', import.meta.url))})
      const store = await openStore(${JSON.stringify(`sqlite:${path}`)})
      for (let at = 0; ; at++) {
        await store.trail.append([{ at, server: 'fhir', kind: 'fhir', allowed: true, status: 200 }])
        process.stdout.write(at + '\\n')
        if (at % 50 === 0) void store.trail.read()
      }`
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program])
    let printed = ''
    child.stdout.on('data', chunk => {
      printed += chunk
      if (printed.split('\n').length > 300) child.kill('SIGKILL')
    })
    await once(child, 'close')
    const acknowledged = Number(printed.trim().split('\n').at(-1))
    const times = await listTimes(await open(2))
    assert.deepEqual(times, listNumbers(times.length))
    assert.ok(times.length > acknowledged, `${times.length} records, ${acknowledged} acknowledged`)
  })

  it('are not acknowledged if the disk is full, and then the trail has none of them (AUDIT-22)', async () => {
    await (await openStore(`sqlite:${path}`)).close()
    const program = `
      const { openStore } = await import(${JSON.stringify(new URL('../open-store.ts', import.meta.url))})
      const store = await openStore(${JSON.stringify(`sqlite:${path}`)}, { worker: 1 })
      const row = at => ({ at, server: 'fhir', kind: 'fhir', allowed: true, status: 200, reason: 'x'.repeat(2000) })
      for (let at = 0; ; at++) {
        try {
          await store.trail.append([row(at)])
          process.stdout.write(at + '\\n')
        } catch (error) {
          process.exit(0)
        }
      }`
    const { status, stdout, stderr } = spawnSync(
      'sh',
      [
        '-c',
        'trap "" XFSZ; ulimit -f 1000; exec "$0" "$@"',
        process.execPath,
        '--input-type=module',
        '--eval',
        program,
      ],
      { encoding: 'utf8' },
    )
    assert.equal(status, 0, stderr)
    assert.deepEqual(await listTimes(await open(2)), stdout.trim().split('\n').map(Number))
  })

  it('stay in their database if it is replaced', async () => {
    const store = await openStore(`sqlite:${path}`, { worker: 1 })
    await store.trail.append([row(1)])
    for (const end of ['', '-wal', '-shm']) renameSync(`${path}${end}`, `${path}-old${end}`)
    const restarted = await open(2)
    await assert.rejects(listTimes(store), /was replaced/)
    await assert.rejects(store.trail.append([row(2)]), /was replaced/)
    await store.close()
    assert.deepEqual(await listTimes(restarted), [])
    assert.equal(count('audit_waiting', `${path}-old`), 1)
  })

  it('are refused if the trail would refuse them', async () => {
    const store = await open()
    const bad = { ...row(2), status: null as unknown as number }
    await assert.rejects(store.trail.append([row(1), bad]), /it has no status/)
    assert.deepEqual(await listTimes(store), [])
  })

  it('are added to the trail at once if they have a delivery id, which is unique', async () => {
    const store = await open(1)
    const delivered = { ...row(1), delivery_id: 'a' }
    await Promise.all([store.trail.append([delivered]), store.trail.append([row(2)])])
    assert.deepEqual([count('audit_waiting'), count('audit_event')], [1, 1])
    const again = store.trail.append([delivered])
    const [refused, added] = await Promise.allSettled([again, store.trail.append([row(3)])])
    assert.deepEqual([refused.status, added.status], ['rejected', 'fulfilled'])
    assert.deepEqual(await listTimes(store), [1, 2, 3])
  })

  it('let others run while thousands are added, and are all added or none', async () => {
    const store = await open(1)
    const identified = (at: number) => ({ ...row(at), delivery_id: `entry-${at}` })
    let turns = 0
    const others = setInterval(() => turns++, 1)
    await store.trail.append(listNumbers(5000).map(identified))
    clearInterval(others)
    assert.ok(turns > 5, `${turns} turns`)
    assert.equal(count('audit_event'), 5000)
    const known = identified(0)
    await assert.rejects(store.trail.append([...listNumbers(1000).map(at => identified(5000 + at)), known]))
    assert.deepEqual(await listTimes(store), listNumbers(5000))
  })

  it('are reported once if they cannot be moved', async () => {
    const reports: unknown[] = []
    const store = await openStore(`sqlite:${path}`, { onStuckRecords: error => reports.push(String(error)) })
    stores.push(store)
    await refuseRecords(store)
    await store.trail.append([row(1)])
    while (reports.length === 0) await pause(20)
    await pause(1200)
    assert.deepEqual(reports, ['Error: refused'])
  })
})
