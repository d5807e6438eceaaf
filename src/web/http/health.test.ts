import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { createLogger, createServer, joinWorkers, NotReady, type ReadyCheck } from './index.ts'

async function server(checks: readonly ReadyCheck[], clock?: () => number): Promise<FastifyInstance> {
  return createServer({ name: 'fhir', url: 'http://localhost:8080', checks, ...(clock ? { clock } : {}) })
}

describe('GET /healthz', () => {
  it('sends 200 even while a dependency is unavailable (START-3)', async () => {
    const app = await server([{ name: 'database', check: () => Promise.reject(new Error('gone')) }])
    const response = await app.inject('/healthz')
    assert.equal(response.statusCode, 200)
    assert.deepEqual(response.json(), { status: 'ok' })
  })
})

describe('GET /readyz', () => {
  it('sends 200 if every check passes', async () => {
    const app = await server([{ name: 'database', check: async () => {} }])
    const response = await app.inject('/readyz')
    assert.equal(response.statusCode, 200)
    assert.deepEqual(response.json(), { status: 'ready', checks: [{ name: 'database', ok: true }] })
  })

  it('shows how a dependency is used', async () => {
    const app = await server([{ name: 'upstream', check: async () => 'profile hapi' }])
    const checks = [{ name: 'upstream', ok: true, note: 'profile hapi' }]
    assert.deepEqual((await app.inject('/readyz')).json(), { status: 'ready', checks })
    joinWorkers(app, {
      metrics: async () => [],
      readiness: async () => ['hapi', 'post-only'].map(it => [{ name: 'upstream', ok: true, note: it }]),
    })
    assert.deepEqual((await app.inject('/readyz')).json().checks, [
      { name: 'upstream', ok: true, note: 'hapi; post-only' },
    ])
  })

  it('sends 503 with the reason of a NotReady error (START-4)', async () => {
    const app = await server([
      {
        name: 'key set',
        check: () => Promise.reject(new NotReady('it was not fetched yet from https://me:pw@x')),
      },
      { name: 'signing key', check: async () => {} },
    ])
    const response = await app.inject('/readyz')
    assert.equal(response.statusCode, 503)
    assert.deepEqual(response.json(), {
      status: 'not ready',
      checks: [
        { name: 'key set', ok: false, reason: 'it was not fetched yet from https://[secret]@x' },
        { name: 'signing key', ok: true },
      ],
    })
  })

  it('logs the message of a driver once, without the password, and logs the recovery', async () => {
    let log = ''
    const logger = createLogger({ level: 'warn', destination: { write: text => (log += text) } })
    let now = 0
    let isThere = false
    // Throws synchronously, as a driver may.
    const check = (): Promise<void> => {
      if (!isThere) throw new Error('connect ECONNREFUSED 10.1.2.3:5432 postgres://me:hunter2@db/x')
      return Promise.resolve()
    }
    const app = await createServer({
      name: 'fhir',
      url: 'http://localhost:8080',
      logger,
      clock: () => now,
      checks: [{ name: 'database', check }],
    })
    const ask = async () => {
      now += 1_000
      return (await app.inject('/readyz')).json().checks
    }
    const unavailable = { name: 'database', ok: false, reason: 'unavailable; see the log' }
    for (let at = 0; at < 3; at++) assert.deepEqual(await ask(), [unavailable])
    isThere = true
    for (let at = 0; at < 3; at++) assert.deepEqual(await ask(), [{ name: 'database', ok: true }])
    const lines = log.split('\n').filter(Boolean)
    assert.deepEqual(
      lines.map(line => JSON.parse(line)).map(({ level, check, msg }) => [level, check, msg]),
      [
        ['warn', 'database', 'Unavailable: database'],
        ['warn', 'database', 'Recovered: database'],
      ],
    )
    assert.match(log, /ECONNREFUSED 10\.1\.2\.3:5432/)
    assert.doesNotMatch(log, /hunter2/)
  })

  it('does not wait for a check that hangs', async t => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const app = await server([{ name: 'upstream', check: () => new Promise(() => {}) }])
    await app.ready()
    const response = app.inject('/readyz').then(response => response)
    await new Promise(resolve => setImmediate(resolve))
    t.mock.timers.tick(1_000)
    assert.equal((await response).json().checks[0].reason, 'no response within 1000 ms')
  })

  it('runs a check once for concurrent requests, and again after half a second (START-4)', async () => {
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
