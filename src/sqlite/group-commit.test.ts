import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as endTurn } from 'node:timers/promises'
import { GroupCommit } from './group-commit.ts'

/** Groups of texts, whose commits end when the test says so. */
function openGroups() {
  const commits: { readonly texts: readonly string[]; end(): void; fail(error: Error): void }[] = []
  const groups = new GroupCommit<string[]>(
    () => [],
    texts => {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      commits.push({ texts, end: resolve, fail: reject })
      return promise
    },
  )
  const add = (text: string) => {
    const { content, durable } = groups.join()
    content.push(text)
    return durable
  }
  return { groups, commits, add }
}

describe('GroupCommit', () => {
  it('commits what callers of one turn add, and then what was added meanwhile', async () => {
    const { commits, add } = openGroups()
    const first = [add('a'), add('b')]
    await endTurn()
    const second = add('c')
    await endTurn()
    assert.deepEqual(
      commits.map(({ texts }) => texts),
      [['a', 'b']],
    )
    commits[0]?.end()
    await Promise.all(first)
    await endTurn()
    assert.deepEqual(commits[1]?.texts, ['c'])
    commits[1]?.fail(new Error('full'))
    await assert.rejects(second, /full/)
  })

  it('does not commit a group that is lost; the next caller begins another', async () => {
    const { groups, commits, add } = openGroups()
    const lost = add('a')
    groups.lose(new Error('full'))
    const kept = add('b')
    await assert.rejects(lost, /full/)
    await endTurn()
    assert.deepEqual(
      commits.map(({ texts }) => texts),
      [['b']],
    )
    commits[0]?.end()
    await kept
  })

  it('finishes after the group that waits for another', async () => {
    const { groups, commits, add } = openGroups()
    add('a')
    await endTurn()
    add('b')
    let isFinished = false
    const finished = groups.finish().then(() => {
      isFinished = true
    })
    commits[0]?.end()
    await endTurn()
    await endTurn()
    assert.equal(isFinished, false)
    commits[1]?.end()
    await finished
  })
})
