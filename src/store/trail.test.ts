import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eachDatabase } from '../../test/support/databases.ts'
import { DatabaseUnavailable, openStore } from './index.ts'
import { writeTogether } from './trail.ts'

const row = (at: number, patient_id: string | null = null) => ({
  at,
  server: 'fhir' as const,
  kind: 'fhir',
  allowed: at % 2 === 0,
  status: 200,
  patient_id,
})

eachDatabase((name, open, create) => {
  describe('Store.trail', () => {
    it('has all records of a call, for another store at once (AUDIT-22)', async () => {
      const url = await create()
      const store = await openStore(url)
      await Promise.all([store.trail.append([row(1, 'ada')]), store.trail.append([row(2)])])
      const other = await openStore(url)
      const rows = await (await other.trail.read())
        .selectFrom('audit_event')
        .select(['at', 'allowed', 'patient_id', 'reason'])
        .orderBy('id')
        .execute()
      assert.deepEqual(rows, [
        { at: 1, allowed: false, patient_id: 'ada', reason: null },
        { at: 2, allowed: true, patient_id: null, reason: null },
      ])
      await Promise.all([store.close(), other.close()])
    })

    it('adds all records of a call or none', async () => {
      const store = await open()
      const bad = { ...row(3), status: null as unknown as number }
      await assert.rejects(store.trail.append([row(1), bad]))
      await store.trail.append([row(5)])
      const rows = await (await store.trail.read()).selectFrom('audit_event').select('at').execute()
      assert.deepEqual(rows, [{ at: 5 }])
    })

    it('adds a record with the change of its transaction, or not at all (AUDIT-8)', async () => {
      const store = await open()
      const change = (at: number, fault?: Error) =>
        store.db.transaction().execute(async trx => {
          await trx
            .insertInto('login_failure')
            .values({ username_address_hash: `${at}`, at })
            .execute()
          await store.trail.appendIn(trx, row(at))
          if (fault) throw fault
        })
      await change(1)
      await assert.rejects(change(2, new Error('The change failed')), /The change failed/)
      const bad = { ...row(3), status: null as unknown as number }
      await assert.rejects(store.db.transaction().execute(trx => store.trail.appendIn(trx, bad)))
      const rows = await (await store.trail.read()).selectFrom('audit_event').select('at').execute()
      assert.deepEqual(rows, [{ at: 1 }])
    })

    it('accepts thousands of records, in parallel with transactions and other calls', async () => {
      const store = await open()
      const many = Array.from({ length: 4000 }, (_, at) => row(at))
      await Promise.all([
        store.trail.append(many),
        store.trail.append(many),
        store.trail.append([]),
        store.db.transaction().execute(async trx => {
          await trx.insertInto('login_failure').values({ username_address_hash: 'x', at: 1 }).execute()
          await new Promise(resolve => setImmediate(resolve))
        }),
      ])
      const { count } = await (await store.trail.read())
        .selectFrom('audit_event')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .executeTakeFirstOrThrow()
      assert.equal(Number(count), 8000, name)
    })
  })
})

function slowDisk() {
  const groups: {
    readonly rows: readonly string[]
    readonly done: () => void
    readonly fail: (e: Error) => void
  }[] = []
  const write = (rows: readonly string[]) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    groups.push({ rows: [...rows], done: resolve, fail: reject })
    return promise
  }
  return { groups, write }
}

async function turn(): Promise<void> {
  for (let times = 0; times < 3; times++) await new Promise(resolve => setImmediate(resolve))
}

describe('writeTogether', () => {
  it('writes rows of one turn together, and resolves each caller when they are durable', async () => {
    const { groups, write } = slowDisk()
    const commit = writeTogether<string>(write)
    let resolved = 0
    const both = ['a', 'b'].map(row => commit([row]).then(() => resolved++))
    await turn()
    assert.deepEqual(
      groups.map(group => group.rows),
      [['a', 'b']],
    )
    assert.equal(resolved, 0)
    groups[0]?.done()
    await Promise.all(both)
    assert.equal(resolved, 2)
  })

  it('collects rows while a commit is running', async () => {
    const { groups, write } = slowDisk()
    const commit = writeTogether<string>(write)
    const first = commit(['a'])
    await turn()
    const rest = [commit(['b']), commit(['c', 'd'])]
    await turn()
    assert.equal(groups.length, 1)
    groups[0]?.done()
    await first
    await turn()
    assert.deepEqual(groups[1]?.rows, ['b', 'c', 'd'])
    groups[1]?.done()
    await Promise.all(rest)
  })

  it('fails only callers whose rows were not written', async () => {
    const { groups, write } = slowDisk()
    const commit = writeTogether<string>(write)
    const lost = commit(['a'])
    await turn()
    const kept = commit(['b'])
    await turn()
    groups[0]?.fail(new DatabaseUnavailable('disk full'))
    await assert.rejects(lost, /disk full/)
    await turn()
    groups[1]?.done()
    await kept
    const after = commit(['c'])
    await turn()
    groups[2]?.done()
    await after
  })

  it('rejects rows if too many are waiting', async () => {
    const { groups, write } = slowDisk()
    const commit = writeTogether<string>(write, 2)
    const first = commit(['a'])
    await turn()
    const waiting = commit(['b', 'c'])
    await assert.rejects(commit(['d']), /2 are waiting/)
    groups[0]?.done()
    await first
    await turn()
    groups[1]?.done()
    await waiting
  })

  it('fails only the caller whose rows the database refuses', async () => {
    const written: string[][] = []
    const write = async (rows: readonly string[]) => {
      if (rows.includes('bad')) throw new Error('constraint failed')
      written.push([...rows])
    }
    const commit = writeTogether<string>(write)
    const callers = [['a'], ['b', 'bad'], ['c'], ['d', 'e'], ['bad']].map(rows => commit(rows))
    const results = await Promise.allSettled(callers)
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'rejected'],
    )
    assert.deepEqual(written.flat().toSorted(), ['a', 'c', 'd', 'e'])
  })

  it('does not try row by row while the database is unavailable', async () => {
    let writes = 0
    const write = async () => {
      writes++
      throw new DatabaseUnavailable('disk full')
    }
    const commit = writeTogether<string>(write)
    const results = await Promise.allSettled([commit(['a']), commit(['b']), commit(['c'])])
    assert.ok(results.every(({ status }) => status === 'rejected'))
    assert.equal(writes, 1)
  })
})
