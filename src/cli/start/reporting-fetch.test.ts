import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createLogger } from '../../web/http/index.ts'
import { createReportingFetch } from './reporting-fetch.ts'

const untrusted = new TypeError('fetch failed', {
  cause: Object.assign(new Error('unable to verify'), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' }),
})

describe('createReportingFetch', () => {
  it('logs once why a server is unreachable, and when it recovers, without the path or query', async () => {
    const lines: string[] = []
    const logger = createLogger({ destination: { write: line => lines.push(line) } })
    const answers = [untrusted, untrusted, new DOMException('late', 'TimeoutError'), undefined, undefined]
    const fetch = createReportingFetch(async () => {
      const answer = answers.shift()
      if (answer) throw answer
      return new Response()
    }, logger)
    const ask = () => fetch('https://auth.example/oauth2/token?code=abc')
    await assert.rejects(ask, untrusted)
    await assert.rejects(ask)
    await assert.rejects(ask)
    assert.equal((await ask()).status, 200)
    assert.equal((await ask()).status, 200)
    const entries = lines.map(line => {
      const { msg, origin, reason } = JSON.parse(line)
      return [origin, reason, msg]
    })
    const origin = 'https://auth.example'
    assert.deepEqual(entries, [
      [
        origin,
        'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
        'Cannot reach server: add its certificate authority to NODE_EXTRA_CA_CERTS',
      ],
      [origin, 'TimeoutError', 'Cannot reach server'],
      [origin, undefined, 'Server is reachable again'],
    ])
    assert.doesNotMatch(lines.join(), /abc/)
  })
})
