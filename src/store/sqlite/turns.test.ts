import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Turns } from './database-file.ts'

describe('Turns', () => {
  it('grants one turn at a time, in order of request', async () => {
    const turns = new Turns(1000)
    const seen: string[] = []
    const act = async (name: string) => {
      const giveBack = await turns.take()
      seen.push(`${name} begins`)
      await new Promise(resolve => setImmediate(resolve))
      seen.push(`${name} ends`)
      giveBack()
    }
    await Promise.all([act('a'), act('b'), act('c')])
    assert.deepEqual(seen, ['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
  })

  it('rejects a caller that waits longer than the limit, and serves the next when the turn is released', async () => {
    const turns = new Turns(20)
    const giveBack = await turns.take()
    await assert.rejects(turns.take(), /Cannot write to database: no turn within 20 ms/)
    const next = turns.take()
    giveBack()
    ;(await next)()
  })
})
