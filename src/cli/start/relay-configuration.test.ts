import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { relayConfiguration } from './relay-configuration.ts'

const URL = 'https://idp.test/.well-known/smart-configuration'
const FIRST = {
  authorization_endpoint: 'https://idp.test/a',
  token_endpoint: 'https://idp.test/t',
  capabilities: ['x'],
}

function relayed(answers: (() => Response)[]) {
  let now = 0
  const warned: string[] = []
  const configuration = relayConfiguration({
    url: URL,
    fetch: async url => {
      assert.equal(url, URL)
      const answer = answers.shift()
      if (!answer) throw new Error('unreachable')
      return answer()
    },
    clock: () => now,
    warn: text => warned.push(text),
  })
  return { configuration, warned, later: (ms: number) => (now += ms) }
}

describe('relayConfiguration', () => {
  it("relays the identity provider's configuration, refreshes it, and keeps the old one while the provider is unreachable (GATEWAY-17)", async () => {
    const second = { ...FIRST, capabilities: ['y'] }
    const { configuration, later, warned } = relayed([
      () => Response.json(FIRST),
      () => Response.json(second),
    ])
    await configuration.refresh()
    assert.deepEqual(configuration.current(), FIRST)
    later(300_001)
    configuration.current()
    await new Promise(setImmediate)
    assert.deepEqual(configuration.current(), second)
    later(300_001)
    configuration.current()
    await new Promise(setImmediate)
    assert.deepEqual(configuration.current(), second)
    assert.match(warned[0] ?? '', /Cannot read the SMART configuration at https:\/\/idp\.test/)
  })

  it('is unavailable until the identity provider responds, and then available to the next request', async () => {
    const { configuration, later } = relayed([
      () => Response.json({ issuer: 'https://idp.test' }),
      () => new Response('<html>'),
      () => Response.json(FIRST),
    ])
    for (let at = 0; at < 2; at++) {
      await configuration.refresh()
      assert.throws(() => configuration.current(), { statusCode: 503 })
    }
    later(2_001)
    assert.throws(() => configuration.current(), { statusCode: 503 })
    await new Promise(setImmediate)
    assert.deepEqual(configuration.current(), FIRST)
  })
})
