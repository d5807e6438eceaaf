import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { groupCommit } from './group-commit.ts'

/** A disk that is told when it has written. */
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

/** All that follows by itself has happened. */
async function turn(): Promise<void> {
  for (let times = 0; times < 3; times++) await new Promise(resolve => setImmediate(resolve))
}

describe('groupCommit', () => {
  it('writes what comes in one turn together, and tells each when it is durable', async () => {
    const { groups, write } = slowDisk()
    const commit = groupCommit<string>({ write })
    let told = 0
    const both = ['a', 'b'].map(row => commit.add([row]).then(() => told++))
    await turn()
    assert.deepEqual(
      groups.map(group => group.rows),
      [['a', 'b']],
    )
    assert.equal(told, 0)
    groups[0]?.done()
    await Promise.all(both)
    assert.equal(told, 2)
  })

  it('gathers while as many commits as it may have are under way', async () => {
    const { groups, write } = slowDisk()
    const commit = groupCommit<string>({ write, atOnce: 1 })
    const first = commit.add(['a'])
    await turn()
    const rest = [commit.add(['b']), commit.add(['c', 'd'])]
    await turn()
    assert.equal(groups.length, 1)
    groups[0]?.done()
    await first
    await turn()
    assert.deepEqual(groups[1]?.rows, ['b', 'c', 'd'])
    groups[1]?.done()
    await Promise.all(rest)
  })

  it('fails those whose rows were not written, and only those', async () => {
    const { groups, write } = slowDisk()
    const commit = groupCommit<string>({ write })
    const lost = commit.add(['a'])
    await turn()
    const kept = commit.add(['b'])
    await turn()
    groups[0]?.fail(new Error('disk full'))
    groups[1]?.done()
    await assert.rejects(lost, /disk full/)
    await kept
    const after = commit.add(['c'])
    await turn()
    groups[2]?.done()
    await after
  })

  it('turns rows away when too many wait', async () => {
    const { groups, write } = slowDisk()
    const commit = groupCommit<string>({ write, atOnce: 1, limit: 2 })
    const first = commit.add(['a'])
    await turn()
    const waiting = commit.add(['b', 'c'])
    await assert.rejects(commit.add(['d']), /2 wait already/)
    groups[0]?.done()
    await first
    await turn()
    groups[1]?.done()
    await waiting
  })
})
