import assert from 'node:assert/strict'
import { createHistogram } from 'node:perf_hooks'
import { describe, it } from 'node:test'
import { type FastifyInstance, fastify } from 'fastify'
import { createServer } from './index.ts'
import { formatMetrics, readProcessMetrics, serveMetrics } from './metrics.ts'
import { addReports, prepareReports } from './reports.ts'
import { endMetrics, type Metrics, mergeMetrics, RequestMetrics } from './request-metrics.ts'

async function server(openMetrics = false): Promise<FastifyInstance> {
  const app = await createServer({ name: 'auth', url: 'http://localhost:9000', openMetrics })
  app.get('/portal/:id', async () => 'ok')
  return app
}

function read(metrics: RequestMetrics): Metrics {
  return { ...metrics.read(), process: readProcessMetrics() }
}

describe('RequestMetrics', () => {
  it('counts into cumulative buckets', () => {
    const metrics = new RequestMetrics()
    for (const seconds of [0.0005, 0.02, 20]) metrics.observe('GET', '/x', 200, seconds)
    const lines = formatMetrics('app', read(metrics)).split('\n')
    const bucket = (le: string) =>
      lines
        .find(line => line.includes(`_bucket{server="app",method="GET",route="/x",le="${le}"}`))
        ?.split(' ')[1]
    assert.deepEqual(['0.001', '0.01', '0.025', '10', '+Inf'].map(bucket), ['1', '1', '2', '2', '3'])
    assert.ok(
      lines.includes(
        'sallyport_http_request_duration_seconds_sum{server="app",method="GET",route="/x"} 20.0205',
      ),
    )
  })

  it('escapes the values of labels', () => {
    const metrics = new RequestMetrics()
    metrics.observe('GET', '/a"b\\c\nd', 200, 0)
    assert.match(formatMetrics('app', read(metrics)), /route="\/a\\"b\\\\c\\nd"/)
  })
})

describe('mergeMetrics', () => {
  it('adds counters and memory of all processes, and keeps the counters of one that has ended', () => {
    const [one, two] = [new RequestMetrics(), new RequestMetrics()]
    one.observe('GET', '/x', 200, 0.02)
    two.observe('GET', '/x', 200, 0.0005)
    two.observe('GET', '/x', 404, 3)
    const [first, second] = [read(one), read(two)]
    const merged = mergeMetrics([first, endMetrics(second)])
    const text = formatMetrics('app', merged)
    assert.match(text, /requests_total\{.*status="200"\} 2\n.*requests_total\{.*status="404"\} 1\n/)
    assert.match(text, /_bucket\{.*le="0.001"\} 1\n(.*\n)*.*le="0.025"\} 2\n(.*\n)*.*_count\{.*\} 3\n/)
    assert.equal(merged.process.cpuSeconds, first.process.cpuSeconds + second.process.cpuSeconds)
    assert.equal(merged.process.residentBytes, first.process.residentBytes)
  })
})

describe('GET /metrics', () => {
  it('reports the event loop delays since the last scrape', async () => {
    const delays = createHistogram()
    const app = fastify()
    prepareReports(app)
    addReports(app, { readiness: async () => [] })
    serveMetrics(app, 'auth', false, delays)
    const scrape = async () =>
      [...(await app.inject('/metrics')).body.matchAll(/^nodejs_eventloop_delay_\w+ (\S+)$/gm)].map(it =>
        Math.round(Number(it[1]) * 10),
      )
    for (const seconds of [...Array(200).fill(0.1), 3]) delays.record(seconds * 1e9)
    assert.deepEqual(await scrape(), [1, 30])
    assert.deepEqual(await scrape(), [0, 0])
    delays.record(2e9)
    assert.deepEqual(await scrape(), [20, 20])
    await app.close()
  })

  it('counts requests by method, route pattern and status, without ids', async () => {
    const app = await server()
    await app.inject('/portal/juniper?code=1')
    await app.inject('/portal/alder')
    await app.inject('/nowhere/else')
    const { body, headers } = await app.inject('/metrics')
    assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
    assert.match(
      body,
      /^sallyport_http_requests_total\{server="auth",method="GET",route="\/portal\/:id",status="200"\} 2$/m,
    )
    assert.match(
      body,
      /^sallyport_http_requests_total\{server="auth",method="GET",route="none",status="404"\} 1$/m,
    )
    assert.match(body, /^process_resident_memory_bytes \d+$/m)
    assert.doesNotMatch(body, /juniper|alder|nowhere/)
  })

  it('has a type for every metric and a number on every line', async () => {
    const app = await server()
    await app.inject('/portal/1')
    const { body } = await app.inject('/metrics')
    for (const line of body.trimEnd().split('\n'))
      assert.match(line, /^(# (HELP|TYPE) \S+ .+|[a-z0-9_]+(\{.*\})? [0-9.e+-]+)$/)
  })

  for (const remoteAddress of ['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1']) {
    it(`allows ${remoteAddress}`, async () => {
      assert.equal((await (await server()).inject({ url: '/metrics', remoteAddress })).statusCode, 200)
    })
  }

  for (const remoteAddress of ['192.0.2.1', '10.0.0.1', '::ffff:10.0.0.1', '2001:db8::1']) {
    it(`refuses ${remoteAddress} by default`, async () => {
      assert.equal((await (await server()).inject({ url: '/metrics', remoteAddress })).statusCode, 403)
      assert.equal((await (await server(true)).inject({ url: '/metrics', remoteAddress })).statusCode, 200)
    })
  }

  for (const name of ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip']) {
    it(`refuses a proxy on this host (${name})`, async () => {
      const response = await (await server()).inject({ url: '/metrics', headers: { [name]: '127.0.0.1' } })
      assert.equal(response.statusCode, 403)
    })
  }
})
