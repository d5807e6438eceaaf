import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { describe, it } from 'node:test'
import { stopSignal } from '../commands/start.ts'

describe('stopSignal', () => {
  function setUp() {
    const source = new EventEmitter()
    const state = { now: 0, forced: 0 }
    const stopped = stopSignal(
      source,
      () => state.forced++,
      () => state.now,
    )
    return { source, state, stopped }
  }

  for (const signal of ['SIGTERM', 'SIGINT']) {
    it(`stops at the first ${signal}`, async () => {
      const { source, state, stopped } = setUp()
      source.emit(signal)
      await stopped
      assert.equal(state.forced, 0)
    })
  }

  it('treats a second signal within a second as the same stop, and exits at a later one (START-5)', () => {
    const { source, state } = setUp()
    source.emit('SIGINT')
    state.now = 1000
    source.emit('SIGTERM')
    assert.equal(state.forced, 0)
    state.now = 1001
    source.emit('SIGINT')
    assert.equal(state.forced, 1)
  })
})
