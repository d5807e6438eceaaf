import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { isDatabaseUnavailable } from '../../../store/index.ts'
import { type Database, openDatabase } from './database.ts'

let folder: string
let database: Database
/** Another connection to the same file, which sees only committed data. */
let other: Database
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fhir-group-'))
  database = openDatabase(join(folder, 'fhir.db'))
  database.exec('CREATE TABLE note (text TEXT PRIMARY KEY)')
  other = openDatabase(join(folder, 'fhir.db'))
})
afterEach(() => {
  database.close()
  other.close()
  rmSync(folder, { recursive: true })
})

const add = (text: string) => database.rows('INSERT INTO note VALUES (?)', [text])
const notesIn = (where: Database) => where.rows('SELECT text FROM note ORDER BY 1', []).flat()

describe('a file that another process writes to', () => {
  it('does not block this process, and is written when it is free', async () => {
    other.exec('BEGIN IMMEDIATE')
    const turns: string[] = []
    const group = database.group(() => turns.push('group'))
    const plan = database.plan(async () => turns.push('plan'))
    await new Promise(resolve => setImmediate(resolve))
    turns.push('free')
    other.exec('COMMIT')
    await Promise.all([group, plan])
    assert.equal(turns[0], 'free')
    assert.deepEqual(turns.slice(1).sort(), ['group', 'plan'])
  })

  it('is given up by every waiting write after the same time, however many wait (STORE-7)', async () => {
    const waiting = openDatabase(join(folder, 'fhir.db'), 150)
    other.exec('BEGIN IMMEDIATE')
    const start = performance.now()
    const give = async (write: () => Promise<unknown>) => {
      await assert.rejects(write(), isDatabaseUnavailable)
      return performance.now() - start
    }
    const times = await Promise.all(
      Array.from({ length: 8 }, (_, at) =>
        give(() => (at % 2 ? waiting.group(() => 'group') : waiting.plan(async () => 'plan'))),
      ),
    )
    other.exec('COMMIT')
    // One after the other, the last of four plans would wait four times as long as the first.
    assert.ok(Math.max(...times) < 2.5 * Math.min(...times), times.join(' '))
    assert.equal(await waiting.plan(async () => 'plan'), 'plan')
    waiting.close()
  })
})

describe('transaction', () => {
  it('is rolled back by an error or a rejected result, even inside another transaction', () => {
    database.transaction(() => {
      add('1')
      database.transaction(
        () => add('2'),
        () => false,
      )
      assert.throws(() =>
        database.transaction(() => {
          add('3')
          throw new Error('no')
        }),
      )
      database.transaction(() => database.transaction(() => add('4')))
    })
    assert.deepEqual(notesIn(other), ['1', '4'])
    database.transaction(
      () => add('5'),
      () => false,
    )
    assert.throws(() => database.transaction(() => database.rows('nonsense', [])))
    assert.deepEqual(notesIn(database), ['1', '4'])
  })
})

describe('group', () => {
  it('commits the writes of one turn together, and acknowledges them afterwards', async () => {
    const acknowledged: string[] = []
    const write = (text: string) =>
      database.group(() => database.transaction(() => add(text))).then(() => acknowledged.push(text))
    const writes = [write('a'), write('b')]
    const failures = database.countFailures()
    const durable = database.flush(failures)
    assert(durable instanceof Promise, 'whoever has read from the group waits for it')
    await Promise.resolve()
    assert.deepEqual([acknowledged, notesIn(other)], [[], []])
    await durable
    assert.deepEqual(notesIn(other), ['a', 'b'])
    await Promise.all(writes)
    assert.deepEqual(acknowledged, ['a', 'b'])
    assert.equal(database.flush(failures), undefined)
  })

  it('rolls back only the work that fails', async () => {
    const works = [
      database.group(() => database.transaction(() => add('a'))),
      database.group(() => database.transaction(() => add('a'))),
      database.group(() =>
        database.transaction(
          () => add('c'),
          () => false,
        ),
      ),
      database.group(() => database.transaction(() => add('d'))),
    ]
    const settled = await Promise.allSettled(works)
    assert.deepEqual(
      settled.map(it => it.status),
      ['fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
    )
    assert.deepEqual(notesIn(other), ['a', 'd'])
  })

  it('acknowledges nothing if the commit fails', async () => {
    database.exec(`PRAGMA foreign_keys = ON;
      CREATE TABLE child (text TEXT REFERENCES note (text) DEFERRABLE INITIALLY DEFERRED)`)
    const works = [
      database.group(() => database.transaction(() => add('a'))),
      database.group(() =>
        database.transaction(() => database.rows(`INSERT INTO child VALUES ('none')`, [])),
      ),
    ]
    const settled = await Promise.allSettled(works)
    assert.deepEqual(
      settled.map(it => it.status),
      ['rejected', 'rejected'],
    )
    assert.deepEqual(notesIn(other), [])
    await database.group(() => database.transaction(() => add('b')))
    assert.deepEqual(notesIn(other), ['b'])
  })

  it('acknowledges only committed writes if the disk becomes full', async () => {
    const [pages] = database.rows('PRAGMA page_count', []).flat()
    database.exec(`PRAGMA max_page_count = ${Number(pages) + 2}`)
    const texts = ['a', 'b'.repeat(100_000), 'c']
    const settled = await Promise.allSettled(
      texts.map(text => database.group(() => database.transaction(() => add(text)))),
    )
    assert.deepEqual(
      notesIn(other),
      texts.filter((_, at) => settled[at]?.status === 'fulfilled'),
    )
    const reasons = settled.flatMap(it => (it.status === 'rejected' ? [it.reason] : []))
    assert.ok(reasons.length > 0 && reasons.every(isDatabaseUnavailable), String(reasons))
  })

  it('is durable if the file is closed before the commit', async () => {
    const write = database.group(() => database.transaction(() => add('a')))
    database.settle()
    assert.deepEqual(notesIn(other), ['a'])
    await write
  })
})

describe('plan', () => {
  const addPlanned = (text: string) => database.commitPlan(() => add(text))
  const nextTurn = () => new Promise(resolve => setImmediate(resolve))

  it('blocks every other writer until its write is done', async () => {
    other.exec('PRAGMA busy_timeout = 0')
    const order: string[] = []
    const plans = ['a', 'b', 'c'].map(text =>
      database.plan(async () => {
        order.push(`${text} reads ${notesIn(database)}`)
        await Promise.resolve()
        assert.throws(() => other.exec("INSERT INTO note VALUES ('z')"), /locked/)
        addPlanned(text)
      }),
    )
    await Promise.all(plans)
    assert.deepEqual(order, ['a reads ', 'b reads a', 'c reads a,b'])
    assert.deepEqual(notesIn(other), [])
    await database.pending()
    assert.deepEqual(notesIn(other), ['a', 'b', 'c'])
    assert.equal(database.pending(), undefined)
  })

  it('reports a conflict once its group has ended, whoever wrote afterwards', async () => {
    const written = await database.plan(async () => {
      await nextTurn()
      other.exec("INSERT INTO note VALUES ('z')")
      return addPlanned('a')
    })
    assert.equal(written, 'conflict')
    const later = await database.plan(async () => {
      await nextTurn()
      void database.group(() => add('b'))
      return addPlanned('a')
    })
    assert.equal(later, 'conflict', 'another group is open')
    await database.pending()
    assert.deepEqual(notesIn(other), ['b', 'z'])
  })

  it('is resumed after a pause, before the next plan, unless another process has written', async () => {
    const order: string[] = []
    const paused = database.plan(async () => {
      await nextTurn()
      void database.group(() => add('b'))
      order.push(`resumed: ${await database.resumePlan()}`)
      addPlanned('a')
    })
    const next = database.plan(async () => order.push('next'))
    await Promise.all([paused, next])
    assert.deepEqual(order, ['resumed: true', 'next'])
    const outdated = await database.plan(async () => {
      await nextTurn()
      other.exec("INSERT INTO note VALUES ('z')")
      return database.resumePlan()
    })
    assert.equal(outdated, false)
    await database.pending()
    assert.deepEqual(notesIn(other), ['a', 'b', 'z'])
  })

  it('is not resumed if writes that it may have read were lost', async () => {
    const resumed = await database.plan(async () => {
      void database.group(() => add('b')).catch(() => {})
      database.exec('ROLLBACK')
      await assert.rejects(database.group(() => add('c')))
      await nextTurn()
      return database.resumePlan()
    })
    assert.equal(resumed, false)
  })

  it('lets the next plan run after one that fails', async () => {
    await assert.rejects(
      database.plan(async () => {
        addPlanned('a')
        addPlanned('a')
      }),
      /UNIQUE/,
    )
    await database.plan(async () => addPlanned('b'))
    await database.pending()
    assert.deepEqual(notesIn(other), ['a', 'b'])
  })

  it('writes nothing if SQLite rolled back its group during the read', async () => {
    await assert.rejects(
      database.plan(async () => {
        addPlanned('a')
        database.exec('ROLLBACK')
        return addPlanned('b')
      }),
      isDatabaseUnavailable,
    )
    assert.deepEqual(notesIn(other), [])
    await database.plan(async () => addPlanned('c'))
    await database.pending()
    assert.deepEqual(notesIn(other), ['c'])
  })

  it('loses the whole group if the disk is full', async () => {
    const [pages] = database.rows('PRAGMA page_count', []).flat()
    database.exec(`PRAGMA max_page_count = ${Number(pages) + 2}`)
    const planned = ['a', 'b'.repeat(100_000)].map(text =>
      database.plan(async () => {
        addPlanned(text)
        return { durable: database.pending() }
      }),
    )
    const settled = await Promise.allSettled(planned.map(it => it.then(({ durable }) => durable)))
    const reasons = settled.flatMap(it => (it.status === 'rejected' ? [it.reason] : []))
    assert.ok(reasons.length === 2 && reasons.every(isDatabaseUnavailable), String(reasons))
    assert.deepEqual(notesIn(other), [])
    await database.plan(async () => addPlanned('c'))
    await database.pending()
    assert.deepEqual(notesIn(other), ['c'])
  })
})
