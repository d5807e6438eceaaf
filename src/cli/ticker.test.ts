import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { withTicker } from './ticker.ts'

describe('withTicker', () => {
  function collect(isTTY: boolean) {
    const drawn: string[] = []
    return { drawn, output: { isTTY, write: (text: string) => drawn.push(text) } }
  }

  /** Work that lasts until the clock of the test is past a time. */
  async function work(t: { mock: { timers: { tick(ms: number): void } } }, ms: number): Promise<string> {
    for (let passed = 0; passed < ms; passed += 500) {
      t.mock.timers.tick(500)
      await Promise.resolve()
    }
    return 'done'
  }

  it('shows on a terminal how long the work has lasted, from two seconds on, and clears the line (CLI-12)', async t => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    t.mock.method(
      performance,
      'now',
      (() => {
        let now = -500
        return () => (now += 500)
      })(),
    )
    const { drawn, output } = collect(true)
    assert.equal(await withTicker('Verifying', output, () => work(t, 3000)), 'done')
    assert.deepEqual(drawn, [
      '\rVerifying: 2 s\x1b[K',
      '\rVerifying: 2 s\x1b[K',
      '\rVerifying: 3 s\x1b[K',
      '\r\x1b[K',
    ])
  })

  it('shows nothing without a terminal, and nothing for short work (CLI-12)', async t => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const log = collect(false)
    await withTicker('Verifying', log.output, () => work(t, 5000))
    assert.deepEqual(log.drawn, [])
    const terminal = collect(true)
    await withTicker('Verifying', terminal.output, async () => 'at once')
    assert.deepEqual(terminal.drawn, [])
  })
})
