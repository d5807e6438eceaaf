import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { type Authenticator, fullAccess } from '../../../smart/index.ts'
import { condition, type Fhir, patient } from '../../sqlite/testing/fhir.ts'
import { UPSTREAM_WAITING_PER_GRANT } from '../limits.ts'
import { type HostileUpstream, json, startHostile } from '../testing/hostile-upstream.ts'
import { startGateway, startUpstream, type UpstreamProcess } from '../testing/start-gateway.ts'
import { createDeadlines } from './exchange.ts'
import { createSlots, type Release, type UpstreamCaller } from './slots.ts'

const callerOf = (holder: string): UpstreamCaller => ({ holder, connection: new Socket() })

describe('createSlots', () => {
  it('limits a grant to its share of the connections (GATEWAY-13)', () => {
    const slots = createSlots(4, 2, createDeadlines())
    const taken = ['a', 'a', 'b', 'b'].map(it => slots.take(callerOf(it), 1_000))
    assert.ok(taken.every(it => typeof it === 'function'))
    assert.ok(slots.take(callerOf('c'), 1_000) instanceof Promise)
    const others = createSlots(4, 2, createDeadlines())
    const third = ['a', 'a', 'a'].map(it => others.take(callerOf(it), 1_000))[2]
    assert.ok(third instanceof Promise)
    assert.equal(typeof others.take(callerOf('b'), 1_000), 'function')
  })

  it('serves waiting requests in turn, one of each grant', async () => {
    const slots = createSlots(1, 1, createDeadlines())
    const first = slots.take(callerOf('a'), 1_000)
    assert.ok(typeof first === 'function')
    const served: string[] = []
    const all = ['a', 'a', 'a', 'b', 'b', 'c'].map(async (holder, at) => {
      const release = await slots.take(callerOf(holder), 1_000)
      assert.ok(typeof release === 'function')
      served.push(`${holder}${at}`)
      release()
    })
    first()
    await Promise.all(all)
    assert.deepEqual(served.map(it => it[0]).join(''), 'abcaba')
  })

  it('never sends a request that has waited too long or whose caller has disconnected', async () => {
    const slots = createSlots(1, 1, createDeadlines())
    const first = slots.take(callerOf('a'), 1_000)
    assert.equal(await slots.take(callerOf('b'), 1), 'late')
    const connection = new Socket()
    const disconnected = slots.take({ holder: 'c', connection }, 1_000)
    const staying = slots.take(callerOf('d'), 1_000)
    connection.destroy()
    assert.equal(await disconnected, 'abandoned')
    if (typeof first === 'function') first()
    assert.equal(typeof (await staying), 'function')
  })

  it('refuses at once if too many requests of a grant wait', () => {
    const slots = createSlots(1, 1, createDeadlines())
    const taken = Array.from({ length: UPSTREAM_WAITING_PER_GRANT + 2 }, () =>
      slots.take(callerOf('a'), 1_000),
    )
    assert.deepEqual([typeof taken[0], taken.at(-1)], ['function' satisfies string, 'crowded'])
    const other: Release | unknown = slots.take(callerOf('b'), 1_000)
    assert.ok(other instanceof Promise)
  })
})

/** Every token is a separate grant. */
const guard: Authenticator = {
  authenticate: authorization => ({
    allowed: true,
    grant: { scopes: [], subject: authorization ?? '' },
    decide: () => ({ allowed: true, access: fullAccess }),
  }),
}

describe('a grant that uses all its connections', () => {
  let upstream: HostileUpstream
  let fhir: Fhir
  before(async () => {
    upstream = await startHostile()
    fhir = await startGateway(upstream.url, { guard, connections: 4, timeoutMs: 800 })
    // A search is never answered, any other request at once.
    upstream.answer((request, response) => {
      if (request.url?.includes('?')) return
      json(response, request.url?.includes('Condition') ? condition('c', 'ann') : patient('ann'))
    })
  })
  after(async () => {
    await fhir.close()
    await upstream.close()
  })

  it('leaves connections to others, sends no request that has timed out, and keeps /readyz ready (GATEWAY-8)', async () => {
    const puts = () => upstream.seen.filter(it => it.line.startsWith('PUT')).length
    const slow = Array.from({ length: 30 }, () => fhir.as('slow')('GET Condition?code=x'))
    const sent = fhir.as('slow')('PUT Condition/c', condition('c', 'ann')).then(puts)
    const read = await fhir.as('other')('GET Patient/ann')
    assert.equal(read.status, 200)
    assert.deepEqual(new Set((await Promise.all(slow)).map(it => it.status)), new Set([504]))
    assert.equal((await fhir.app.inject('/readyz')).statusCode, 200)
    // Waiting requests precede this one.
    assert.equal((await fhir.as('slow')('GET Patient/ann')).status, 200)
    assert.equal((await fhir.as('other')('GET Condition/c')).status, 200)
    assert.equal(puts(), await sent)
    assert.ok(upstream.seen.filter(it => it.line.includes('?')).length < 30)
  })
})

describe('an upstream process that stops answering during a burst of requests', () => {
  let upstream: UpstreamProcess
  let fhir: Fhir
  before(async () => {
    upstream = await startUpstream()
    fhir = await startGateway(upstream.url, { guard, timeoutMs: 800 })
  })
  after(async () => {
    upstream.resume()
    await fhir.close()
    await upstream.end()
  })

  /** Polls /readyz until it has this status; returns the elapsed milliseconds. */
  async function untilReadyIs(status: number, boundMs: number): Promise<number> {
    const began = performance.now()
    for (;;) {
      const { statusCode } = await fhir.app.inject('/readyz')
      const waited = performance.now() - began
      if (statusCode === status) return waited
      assert.ok(waited < boundMs, `/readyz is still ${statusCode} after ${Math.round(waited)} ms`)
      await setTimeout(50)
    }
  }

  it('is ready within 10 s after it answers again', async () => {
    assert.equal((await fhir.as('other')('PUT Patient/ann', patient('ann'))).status, 201)
    upstream.pause()
    const burst = Array.from({ length: 130 }, () => fhir.as('slow')('GET Condition?code=x'))
    const statuses = new Set((await Promise.all(burst)).map(it => it.status))
    assert.ok(
      [...statuses].every(it => it === 503 || it === 504),
      [...statuses].join(),
    )
    await untilReadyIs(503, 10_000)
    upstream.resume()
    await untilReadyIs(200, 10_000)
    assert.equal((await fhir.as('other')('GET Patient/ann')).status, 200)
  })
})
