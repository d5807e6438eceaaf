import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Closing } from './parts.ts'

describe('Closing', () => {
  it('closes in reverse order, each once', async () => {
    const closing = new Closing()
    const seen: number[] = []
    for (const step of [1, 2, 3]) closing.add(async () => seen.push(step))
    await closing.close()
    await closing.close()
    assert.deepEqual(seen, [3, 2, 1])
  })

  it('continues if a step fails and throws at the end', async () => {
    const closing = new Closing()
    let closed = false
    closing.add(() => {
      closed = true
    })
    closing.add(() => {
      throw new Error('cannot close')
    })
    await assert.rejects(closing.close(), /cannot close/)
    assert.equal(closed, true)
  })
})
