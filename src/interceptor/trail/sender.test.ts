import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AuditRecord } from '../../audit-record/index.ts'
import { createTrailSender, type TrailSenderOptions } from './sender.ts'

const record = (more: Partial<AuditRecord> = {}): AuditRecord => ({
  at: 1000,
  server: 'fhir',
  kind: 'fhir',
  allowed: true,
  status: 200,
  ...more,
})

interface Sent {
  readonly id: string
  readonly record: Readonly<Record<string, unknown>>
}

/** An auth server that takes records, as far as a sender knows it. */
function startTrail(more: Partial<TrailSenderOptions> = {}) {
  const state = {
    away: false,
    tokens: 0,
    status: 200,
    now: 0,
    batches: [] as (readonly Sent[])[],
    refused: [] as object[],
    errors: [] as string[],
  }
  const sender = createTrailSender({
    authUrl: 'http://auth.test/',
    fhirBaseUrl: 'http://fhir.test/fhir/',
    clientId: 'my server',
    credential: { secret: 'a:b' },
    clock: () => state.now,
    onError: error => state.errors.push(String(error)),
    async fetch(url, init) {
      if (state.away) throw new TypeError('fetch failed')
      if (url === 'http://auth.test/oauth2/token') {
        const { authorization = '' } = init.headers as Record<string, string>
        assert.equal(Buffer.from(authorization.slice(6), 'base64').toString(), 'my%20server:a%3Ab')
        assert.equal(String(init.body), 'grant_type=client_credentials&scope=sallyport%2Faudit')
        return Response.json({ access_token: `t${++state.tokens}`, expires_in: 300 })
      }
      assert.equal(url, 'http://auth.test/audit-records')
      const { issuer, fhirBaseUrl, records } = JSON.parse(String(init.body))
      assert.deepEqual([issuer, fhirBaseUrl], ['http://auth.test', 'http://fhir.test/fhir'])
      state.batches.push(records)
      if (state.status !== 200) return Response.json({ error_description: 'no' }, { status: state.status })
      return Response.json({ refused: state.refused })
    },
    ...more,
  })
  return { state, sender }
}

describe('createTrailSender', () => {
  it('sends records in batches and in order, with one token, and with ids of their own (LIBRARY-11)', async () => {
    const { state, sender } = startTrail()
    for (let at = 0; at < 450; at++) sender.send(record({ at }))
    await sender.flush()
    assert.deepEqual(
      [state.batches.map(it => it.length), state.tokens, sender.waiting],
      [[200, 200, 50], 1, 0],
    )
    const sent = state.batches.flat()
    assert.deepEqual(
      sent.map(it => it.record.at),
      Array.from({ length: 450 }, (_, at) => at),
    )
    assert.equal(new Set(sent.map(({ id }) => id)).size, 450)
    assert.deepEqual(Object.keys(sent[0]?.record ?? {}), ['at', 'allowed', 'status'])
  })

  it('sends the same records with the same ids again after an outage, and reports the outage once (LIBRARY-11)', async () => {
    const { state, sender } = startTrail()
    sender.send(record({ at: 1 }))
    state.away = true
    for (let times = 0; times < 3; times++) await sender.flush()
    assert.deepEqual([state.errors, sender.waiting], [['TypeError: fetch failed'], 1])
    state.away = false
    state.status = 503
    await sender.flush()
    state.status = 200
    sender.send(record({ at: 2 }))
    await sender.flush()
    const [first, second] = state.batches
    assert.deepEqual(
      second?.map(it => it.record.at),
      [1, 2],
    )
    assert.equal(first?.[0]?.id, second?.[0]?.id)
    assert.deepEqual([sender.waiting, state.errors.length], [0, 1])
  })

  it('gets a new token before the old one expires, and after it was refused', async () => {
    const { state, sender } = startTrail()
    const send = async () => {
      sender.send(record())
      await sender.flush()
    }
    await send()
    state.now = 269_000
    await send()
    assert.equal(state.tokens, 1)
    state.now = 270_000
    await send()
    assert.equal(state.tokens, 2)
    state.status = 401
    await send()
    state.status = 200
    await sender.flush()
    assert.deepEqual([state.tokens, sender.waiting], [3, 0])
  })

  it('has no room while too many records wait, and loses none of the requests in progress (LIBRARY-11)', async () => {
    const { state, sender } = startTrail({ maxWaiting: 3 })
    state.away = true
    for (let at = 0; at < 3; at++) {
      assert.equal(sender.hasRoom(), true)
      sender.send(record({ at }))
    }
    assert.equal(sender.hasRoom(), false)
    for (let at = 3; at < 7; at++) sender.send(record({ at }))
    assert.deepEqual([sender.waiting, state.errors.length], [6, 1])
    state.away = false
    await sender.flush()
    assert.deepEqual([sender.hasRoom(), state.batches.flat().length], [true, 6])
  })

  it('drops further records if it may, and says so', async () => {
    const { state, sender } = startTrail({ maxWaiting: 2, whenFull: 'drop' })
    state.away = true
    for (let at = 0; at < 4; at++) sender.send(record({ at }))
    assert.deepEqual([sender.hasRoom(), sender.waiting, state.errors.length], [true, 2, 2])
    assert.match(state.errors[0] ?? '', /Cannot keep an audit record: 2 are waiting/)
  })

  it('counts anonymous requests, so that they do not fill the queue', async () => {
    const { state, sender } = startTrail()
    for (let at = 0; at < 5000; at++)
      sender.send(record({ allowed: false, status: 401, anonymous: true, address: '10.0.0.1' }))
    assert.equal(sender.waiting, 1)
    await sender.close()
    assert.deepEqual(
      state.batches.flat().map(it => it.record.repeats),
      [undefined, 4999],
    )
  })

  it('reports a record that the trail does not accept, and goes on with the next', async () => {
    const { state, sender } = startTrail()
    state.refused = [{ id: 'x', reason: 'its at is not valid' }]
    sender.send(record())
    await sender.flush()
    assert.deepEqual(
      [sender.waiting, state.errors],
      [0, ['Error: The audit trail does not accept record x: its at is not valid']],
    )
  })

  it('shortens what the trail would not accept, and divides what is too long for one request', async () => {
    const { state, sender } = startTrail()
    sender.send(
      record({ reason: 'x'.repeat(5000), patients: Array.from({ length: 3000 }, (_, at) => `p${at}`) }),
    )
    for (let at = 0; at < 20; at++)
      sender.send(record({ patients: Array.from({ length: 1000 }, () => 'x'.repeat(64)) }))
    await sender.flush()
    const [first] = state.batches.flat()
    assert.equal(String(first?.record.reason).length, 2000)
    const { patients } = first?.record ?? {}
    assert.ok(Array.isArray(patients))
    assert.deepEqual([patients.length, patients.at(-1)], [1001, '*'])
    assert.equal(state.batches.flat().length, 21)
    for (let at = 0; at < 400; at++) sender.send(record({ reason: '漢'.repeat(2000) }))
    await sender.flush()
    assert.ok(state.batches.every(batch => Buffer.byteLength(JSON.stringify(batch)) < 1_000_000))
  })
})
