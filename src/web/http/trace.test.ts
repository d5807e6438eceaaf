import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { startCollector } from '../../../test/support/collector.ts'
import { createLogger, createServer, startClientSpan, startSpanExport } from './index.ts'
import { processMetrics } from './registry.ts'

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'
const TRACEPARENT = `00-${TRACE_ID}-${PARENT}-01`

/** A server whose routes call another server. */
async function open(lines: string[] = []) {
  const logger = createLogger({ destination: { write: line => void lines.push(line) } })
  const app = await createServer({ name: 'app', url: 'http://localhost:8081', logger })
  const call = (status: number) => {
    const span = startClientSpan('GET', 'http://fhir.example:8080')
    span?.end(status)
    return span?.headers ?? {}
  }
  app.get('/call/:patient', async () => call(200))
  app.post('/call', async () => call(404))
  app.get('/fail', async () => {
    throw new Error('Cannot work')
  })
  return app
}

describe('a trace', () => {
  it('is passed on unchanged, with tracestate and without baggage, even after a body (TRACE-1)', async () => {
    const app = await open()
    const headers = { traceparent: TRACEPARENT, tracestate: 'a=1,b=2', baggage: 'patient=1' }
    const passed = { traceparent: TRACEPARENT, tracestate: 'a=1,b=2' }
    assert.deepEqual((await app.inject({ url: '/call/1', headers })).json(), passed)
    const post = { method: 'POST', url: '/call', headers, payload: { a: 1 } } as const
    assert.deepEqual((await app.inject(post)).json(), passed)
    assert.deepEqual((await app.inject('/call/1')).json(), {})
  })

  it('is named in the log lines of the request (TRACE-1)', async () => {
    const lines: string[] = []
    const app = await open(lines)
    await app.inject({ url: '/call/1', headers: { traceparent: TRACEPARENT } })
    await app.inject('/call/1')
    assert.deepEqual(
      lines.map(line => JSON.parse(line).trace_id),
      [TRACE_ID, undefined],
    )
  })

  for (const traceparent of [
    `ff-${TRACE_ID}-${PARENT}-01`,
    `00-${'0'.repeat(32)}-${PARENT}-01`,
    `00-${TRACE_ID}-${'0'.repeat(16)}-01`,
    `00-${TRACE_ID.toUpperCase()}-${PARENT}-01`,
    `${TRACEPARENT}-more`,
    `00-${TRACE_ID}-${PARENT}`,
    'x'.repeat(2000),
  ])
    it(`is ignored if it is ${traceparent.slice(0, 70)} (TRACE-1)`, async () => {
      const app = await open()
      assert.deepEqual((await app.inject({ url: '/call/1', headers: { traceparent } })).json(), {})
    })

  it('may be of a later version', async () => {
    const app = await open()
    const headers = { traceparent: `01-${TRACE_ID}-${PARENT}-00-more` }
    const { traceparent } = (await app.inject({ url: '/call/1', headers })).json()
    assert.equal(traceparent, `00-${TRACE_ID}-${PARENT}-00`)
  })
})

const collector = await startCollector()

describe('the export of traces', () => {
  after(() => collector.close())
  const lines: string[] = []
  const logger = createLogger({ destination: { write: line => void lines.push(line) } })
  const options = {
    url: `${collector.url}/v1/traces`,
    headers: { authorization: 'Bearer key' },
    timeoutMs: 5000,
    resource: { 'service.name': 'sallyport', host: 'a' },
    everyMs: 60_000,
    batchSize: 2,
    queueSize: 4,
    sampler: { isParentBased: true, ratio: 1 },
  }
  const countSpans = async (result: string) =>
    (await processMetrics.read())
      .find(({ name }) => name === 'sallyport_spans_total')
      ?.values.find(({ labels }) => labels.result === result)?.value ?? 0

  it('sends spans of requests and of their calls, without ids and queries (TRACE-3)', async () => {
    const app = await open()
    const { stop } = startSpanExport(options, logger)
    const headers = { traceparent: TRACEPARENT }
    const passed = await app.inject({ url: '/call/juniper?name=alder', headers })
    await app.inject({ url: '/fail' })
    await app.inject({ url: '/nowhere/juniper' })
    await stop()
    const [call, request, failed, unknown] = collector.spans
    assert.ok(call && request && failed && unknown)
    assert.deepEqual(
      collector.spans.map(({ name, kind, isError }) => [name, kind, isError]),
      [
        ['GET', 3, false],
        ['GET /call/:patient', 2, false],
        ['GET /fail', 2, true],
        ['GET', 2, false],
      ],
    )
    assert.deepEqual([request.traceId, request.parentSpanId], [TRACE_ID, PARENT])
    assert.deepEqual([call.traceId, call.parentSpanId], [TRACE_ID, request.spanId])
    assert.equal(passed.json().traceparent, `00-${TRACE_ID}-${call.spanId}-01`)
    assert.equal(failed.parentSpanId, undefined)
    assert.notEqual(failed.traceId, unknown.traceId)
    assert.deepEqual(call.attributes, {
      'http.request.method': 'GET',
      'server.address': 'fhir.example',
      'server.port': 8080,
      'http.response.status_code': 200,
    })
    assert.deepEqual(unknown.attributes, {
      'sallyport.server': 'app',
      'http.request.method': 'GET',
      'http.response.status_code': 404,
    })
    assert.equal(call.resource.host, 'a')
    assert.equal(collector.state.authorization, 'Bearer key')
    assert.doesNotMatch(JSON.stringify(collector.spans), /juniper|alder/)
  })

  it('follows the sampling decision of the caller, or samples a share (TRACE-2)', async () => {
    const app = await open()
    collector.spans.length = 0
    const { stop } = startSpanExport({ ...options, sampler: { isParentBased: true, ratio: 0 } }, logger)
    const sampled = await app.inject({ url: '/call/1', headers: { traceparent: TRACEPARENT } })
    const not = `00-${TRACE_ID}-${PARENT}-00`
    const unsampled = await app.inject({ url: '/call/1', headers: { traceparent: not } })
    const { traceparent } = (await app.inject('/call/1')).json()
    await stop()
    assert.match(sampled.json().traceparent, /-01$/)
    assert.equal(unsampled.json().traceparent, not)
    assert.match(traceparent, /^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/)
    assert.equal(collector.spans.length, 2)
  })

  it('sends spans again after an outage, drops those beyond the queue, and logs it once (TRACE-4)', async () => {
    const app = await open()
    collector.spans.length = 0
    lines.length = 0
    collector.state.status = 503
    const dropped = await countSpans('dropped')
    const { stop } = startSpanExport({ ...options, everyMs: 20 }, logger)
    for (let count = 0; count < 6; count++) await app.inject('/fail')
    const { requests } = collector.state
    while (collector.state.requests < requests + 3) await new Promise(resolve => setTimeout(resolve, 10))
    collector.state.status = 200
    await stop()
    assert.equal(collector.spans.length, 4)
    assert.equal((await countSpans('dropped')) - dropped, 2)
    assert.deepEqual(
      lines.map(line => JSON.parse(line).msg),
      ['Cannot export traces', 'The collector accepts traces again'],
    )
  })
})
