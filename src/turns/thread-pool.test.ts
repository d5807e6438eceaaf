import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { TaskQueue, ThreadPoolFull } from './thread-pool.ts'

describe('TaskQueue', () => {
  it('runs a limited number of tasks at once, in order, and refuses those that exceed the queue (HTTP-13)', async () => {
    const queue = new TaskQueue({ atOnce: 2, waiting: 2 })
    const begun: number[] = []
    const ends = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
    const tasks = ends.map(({ promise }, at) =>
      queue.run(async () => {
        begun.push(at)
        await promise
        return at
      }),
    )
    await assert.rejects(
      queue.run(async () => 'never'),
      ThreadPoolFull,
    )
    assert.deepEqual(begun, [0, 1])
    ends[1]?.resolve()
    assert.equal(await tasks[1], 1)
    assert.deepEqual(begun, [0, 1, 2])
    for (const { resolve } of ends) resolve()
    assert.deepEqual(await Promise.all(tasks), [0, 1, 2, 3])
    assert.equal(await queue.run(async () => 'free'), 'free')
  })

  it('continues after a task that fails', async () => {
    const queue = new TaskQueue({ atOnce: 1, waiting: 1 })
    const failing = queue.run(() => Promise.reject(new Error('broken')))
    const next = queue.run(async () => 'next')
    await assert.rejects(failing, /broken/)
    assert.equal(await next, 'next')
  })
})
