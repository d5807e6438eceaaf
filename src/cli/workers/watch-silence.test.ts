import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { watchSilence } from './watch-silence.ts'

describe('watchSilence', () => {
  function open() {
    const pings: PromiseWithResolvers<void>[] = []
    const seen = { silences: 0 }
    const tick = watchSilence({
      ping() {
        const ping = Promise.withResolvers<void>()
        pings.push(ping)
        return ping.promise
      },
      onSilent() {
        seen.silences += 1
      },
      ticks: 10,
    })
    const tickTimes = (times: number) => {
      for (let at = 0; at < times; at++) tick()
    }
    return { pings, seen, tickTimes }
  }
  const respond = async (ping: PromiseWithResolvers<void> | undefined) => {
    ping?.resolve()
    await Promise.resolve()
  }

  it('reports once a process that does not respond for ten ticks (START-8)', () => {
    const { pings, seen, tickTimes } = open()
    tickTimes(10)
    assert.equal(seen.silences, 0)
    tickTimes(1)
    assert.equal(seen.silences, 1)
    tickTimes(20)
    assert.deepEqual([seen.silences, pings.length], [1, 1])
  })

  it('counts from the last response', async () => {
    const { pings, seen, tickTimes } = open()
    tickTimes(10)
    await respond(pings[0])
    tickTimes(10)
    assert.deepEqual([seen.silences, pings.length], [0, 2])
    await respond(pings[1])
    tickTimes(11)
    assert.deepEqual([seen.silences, pings.length], [1, 3])
  })
})
