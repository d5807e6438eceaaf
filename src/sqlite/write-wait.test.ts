import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isDatabaseUnavailable } from '../store/index.ts'
import { Turns, WriteWait } from './write-wait.ts'

describe('Turns', () => {
  it('grants one turn at a time, in order of request', async () => {
    const turns = new Turns()
    const seen: string[] = []
    const act = async (name: string) => {
      const giveBack = await turns.take(new WriteWait(1000))
      seen.push(`${name} begins`)
      await new Promise(resolve => setImmediate(resolve))
      seen.push(`${name} ends`)
      giveBack()
    }
    await Promise.all([act('a'), act('b'), act('c')])
    assert.deepEqual(seen, ['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
  })

  it('rejects a caller that waits longer than the limit, and serves the next when the turn is released', async () => {
    const turns = new Turns()
    const giveBack = await turns.take(new WriteWait(1000))
    await assert.rejects(turns.take(new WriteWait(20)), /Cannot write to database: no turn within 20 ms/)
    const next = turns.take(new WriteWait(1000))
    giveBack()
    ;(await next)()
  })
})

describe('WriteWait', () => {
  const busy = Object.assign(new Error('database is locked'), { errcode: 5 })

  it('has one limit for the turn and for the other process (STORE-7)', async () => {
    const turns = new Turns()
    const giveBack = await turns.take(new WriteWait(1000))
    const wait = new WriteWait(40)
    const taken = turns.take(wait)
    setTimeout(giveBack, 20)
    await taken
    const left = wait.leftMs
    assert.ok(left < 40, `${left} ms are left`)
    let attempts = 0
    await assert.rejects(
      wait.retryWhileBusy(() => {
        attempts += 1
        throw busy
      }),
      isDatabaseUnavailable,
    )
    assert.ok(attempts > 0)
    assert.equal(wait.leftMs, 0)
  })

  it('returns the result when the other process is done, and throws every other error at once', async () => {
    let attempts = 0
    const result = await new WriteWait(10_000).retryWhileBusy(() => {
      attempts += 1
      if (attempts < 3) throw busy
      return 'written'
    })
    assert.deepEqual([result, attempts], ['written', 3])
    await assert.rejects(
      new WriteWait(10_000).retryWhileBusy(() => {
        throw new Error('constraint')
      }),
      /constraint/,
    )
  })
})
