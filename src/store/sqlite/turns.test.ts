import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Turns } from './turns.ts'

describe('Turns', () => {
  it('gives one turn at a time, in the order in which they were asked for', async () => {
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

  it('rejects who waits longer than the limit, and lets the next one in when the turn is given back', async () => {
    const turns = new Turns(20)
    const giveBack = await turns.take()
    await assert.rejects(turns.take(), /Cannot write to database: no turn within 20 ms/)
    const next = turns.take()
    giveBack()
    ;(await next)()
  })
})
