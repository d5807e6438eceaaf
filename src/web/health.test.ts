import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { createServer, type ReadyCheck } from './index.ts'

async function server(checks: readonly ReadyCheck[], clock?: () => number): Promise<FastifyInstance> {
  return createServer({ name: 'fhir', url: 'http://localhost:8080', checks, ...(clock ? { clock } : {}) })
}

describe('GET /healthz', () => {
  it('answers 200 even while something is away', async () => {
    const app = await server([{ name: 'database', check: () => Promise.reject(new Error('gone')) }])
    const response = await app.inject('/healthz')
    assert.equal(response.statusCode, 200)
    assert.deepEqual(response.json(), { status: 'ok' })
  })
})

describe('GET /readyz', () => {
  it('answers 200 when every check passes', async () => {
    const app = await server([{ name: 'database', check: async () => {} }])
    const response = await app.inject('/readyz')
    assert.equal(response.statusCode, 200)
    assert.deepEqual(response.json(), { status: 'ready', checks: [{ name: 'database', ok: true }] })
  })

  it('answers 503 with the reason, without the password in it', async () => {
    const app = await server([
      { name: 'database', check: () => Promise.reject(new Error('Cannot reach postgres://me:hunter2@db/x')) },
      { name: 'signing key', check: async () => {} },
    ])
    const response = await app.inject('/readyz')
    assert.equal(response.statusCode, 503)
    assert.deepEqual(response.json(), {
      status: 'not ready',
      checks: [
        { name: 'database', ok: false, reason: 'Cannot reach postgres://[secret]@db/x' },
        { name: 'signing key', ok: true },
      ],
    })
  })

  it('also takes a check that throws at once', async () => {
    const app = await server([
      {
        name: 'data',
        check: () => {
          throw new Error('broken')
        },
      },
    ])
    assert.equal((await app.inject('/readyz')).json().checks[0].reason, 'broken')
  })

  it('does not wait for a check that hangs', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const app = await server([{ name: 'upstream', check: () => new Promise(() => {}) }])
    await app.ready()
    const answer = app.inject('/readyz').then(response => response)
    await new Promise(resolve => setImmediate(resolve))
    t.mock.timers.tick(1_000)
    assert.equal((await answer).json().checks[0].reason, 'no answer in 1000 ms')
  })

  it('asks once for many callers, and again after half a second', async () => {
    let now = 0
    let asked = 0
    const check = async () => {
      asked += 1
    }
    const app = await server([{ name: 'database', check }], () => now)
    await Promise.all([app.inject('/readyz'), app.inject('/readyz'), app.inject('/readyz')])
    assert.equal(asked, 1)
    now = 501
    await app.inject('/readyz')
    assert.equal(asked, 2)
  })
})
