import assert from 'node:assert/strict'
import { createHistogram } from 'node:perf_hooks'
import { describe, it } from 'node:test'
import { type FastifyInstance, fastify } from 'fastify'
import { addReports, prepareReports } from './health.ts'
import { createServer } from './index.ts'
import { createMetricsServer, readProcessMetrics, serveMetrics } from './metrics.ts'
import { endMetrics, formatFamilies, mergeMetrics, Registry } from './registry.ts'

async function server(access: 'loopback' | 'everyone' | 'nobody' = 'loopback'): Promise<FastifyInstance> {
  const app = await createServer({ name: 'auth', url: 'http://localhost:9000', metricsAccess: access })
  app.get('/portal/:id', async () => 'ok')
  return app
}

const DURATION = { name: 'duration_seconds', help: 'A duration.', labels: ['route'] }
const COUNT = { name: 'requests_total', help: 'A count.', labels: ['route'] }

describe('Registry', () => {
  it('counts into cumulative buckets', async () => {
    const registry = new Registry()
    const durations = registry.histogram(DURATION)
    for (const seconds of [0.0005, 0.02, 20]) durations.observe(['/x'], seconds)
    const lines = (await formatFamilies(await registry.read())).split('\n')
    const bucket = (le: string) =>
      lines.find(line => line.startsWith(`duration_seconds_bucket{le="${le}",route="/x"}`))?.split(' ')[1]
    assert.deepEqual(['0.001', '0.01', '0.025', '10', '+Inf'].map(bucket), ['1', '1', '2', '2', '3'])
    assert.ok(lines.includes('duration_seconds_sum{route="/x"} 20.0205'))
    assert.ok(lines.includes('duration_seconds_count{route="/x"} 3'))
  })

  it('escapes the values of labels', async () => {
    const registry = new Registry()
    registry.counter(COUNT).add(['/a"b\\c\nd'])
    assert.match(
      await formatFamilies(await registry.read()),
      /^requests_total\{route="\/a\\"b\\\\c\\nd"\} 1$/m,
    )
  })

  it('omits a gauge that has no value', async () => {
    const registry = new Registry()
    registry.gauge({ name: 'up', help: 'A gauge.', merge: 'min' }, () => [[Number.NaN]])
    registry.gauge({ name: 'lag', help: 'A gauge.', labels: ['feed'], merge: 'max' }, () => [])
    assert.equal(await formatFamilies(await registry.read()), '\n')
  })

  it('has the values of a gauge at the time of the scrape, and no earlier ones', async () => {
    const registry = new Registry()
    const values: [number, string][] = [[1, 'a']]
    registry.gauge({ name: 'lag', help: 'A gauge.', labels: ['feed'], merge: 'max' }, () => values)
    assert.match(await formatFamilies(await registry.read()), /^lag\{feed="a"\} 1$/m)
    values.splice(0, 1, [2, 'b'])
    const text = await formatFamilies(await registry.read())
    assert.match(text, /^lag\{feed="b"\} 2$/m)
    assert.doesNotMatch(text, /"a"/)
  })
})

describe('mergeMetrics', () => {
  it('adds counters and memory of all processes, and keeps the counters of one that has ended (START-10)', async () => {
    const make = async (durations: readonly number[], at: number) => {
      const registry = new Registry()
      registry.counter(COUNT).add(['/x'], at + 1)
      for (const seconds of durations) registry.histogram(DURATION).observe(['/x'], seconds)
      registry.gauge({ name: 'up', help: 'A gauge.', merge: 'min' }, () => [[at]])
      registry.gauge({ name: 'used_bytes', help: 'A gauge.', merge: 'sum' }, () => [[at + 1]])
      return { server: await registry.read(), process: await readProcessMetrics() }
    }
    const [first, second] = [await make([0.02], 0), await make([0.0005, 3], 1)]
    const format = async (ended: typeof second) => formatFamilies((await mergeMetrics([first, ended])).server)
    assert.match(await format(second), /^requests_total\{route="\/x"\} 3$/m)
    assert.match(await format(second), /^up 0$(?:.*\n)*^used_bytes 3$/m)
    assert.match(await format(endMetrics(second)), /^requests_total\{route="\/x"\} 3$/m)
    assert.match(await format(endMetrics(second)), /^used_bytes 1$/m)
    const seconds = (metrics: typeof first) => metrics.process[0]?.values[0]?.value ?? 0
    assert.equal(seconds(await mergeMetrics([first, endMetrics(second)])), seconds(first) + seconds(second))
  })

  it('adds the buckets of histograms', async () => {
    const read = async (seconds: number) => {
      const registry = new Registry()
      registry.histogram(DURATION).observe(['/x'], seconds)
      return { server: await registry.read(), process: [] }
    }
    const all = await mergeMetrics([await read(0.02), await read(0.0005), await read(3)])
    const text = await formatFamilies(all.server)
    assert.match(text, /le="0.001",.* 1\n(.*\n)*.*le="0.025",.* 2\n(.*\n)*.*_count\{.*\} 3\n/)
  })
})

describe('GET /metrics', () => {
  it('reports the event loop delays since the last scrape', async () => {
    const delays = createHistogram()
    const app = fastify()
    prepareReports(app)
    addReports(app, { readiness: async () => [] })
    serveMetrics(app, { server: 'auth', registry: new Registry(), access: 'loopback' }, delays)
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

  it('counts requests by method, route pattern and status, without ids (HTTP-2, METRIC-3)', async () => {
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
    for (const line of body.split('\n').filter(line => line !== ''))
      assert.match(line, /^(# (HELP|TYPE) \S+ .+|[a-z0-9_]+(\{.*\})? [0-9.e+-]+)$/)
  })

  it('shows whether each check of /readyz passes (METRIC-2)', async () => {
    const failing = { name: 'database', check: () => Promise.reject(new Error('down')) }
    const app = await createServer({ name: 'auth', url: 'http://localhost:9000', checks: [failing] })
    const { body } = await app.inject('/metrics')
    assert.match(body, /^sallyport_check_up\{server="auth",check="database"\} 0$/m)
  })

  it('is absent from the port of a server if metrics have their own port (METRIC-1)', async () => {
    const app = await server('nobody')
    assert.equal((await app.inject('/metrics')).statusCode, 404)
  })

  it('has the metrics of all servers on a separate port, and those of the process once (METRIC-1)', async () => {
    const report = async (name: string) => {
      const registry = new Registry()
      registry.counter({ ...COUNT, labels: ['server'] }).add([name])
      return {
        server: name,
        metrics: [{ server: await registry.read(), process: await readProcessMetrics() }],
        readiness: [],
      }
    }
    const app = createMetricsServer(async () => [await report('auth'), await report('fhir')])
    const { body } = await app.inject({ url: '/metrics', remoteAddress: '192.0.2.1' })
    assert.match(body, /^# TYPE requests_total counter\nrequests_total\{server="auth"\} 1\n.*"fhir"\} 1$/m)
    assert.equal(body.match(/^process_cpu_seconds_total /gm)?.length, 1)
    assert.equal((await app.inject('/healthz')).statusCode, 404)
    const careful = createMetricsServer(
      async () => [],
      host => host === 'localhost',
    )
    const statuses = ['localhost:9464', 'evil.example'].map(async host => {
      const { statusCode } = await careful.inject({ url: '/metrics', headers: { host } })
      return statusCode
    })
    assert.deepEqual(await Promise.all(statuses), [200, 421])
  })

  for (const remoteAddress of ['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1']) {
    it(`allows ${remoteAddress}`, async () => {
      assert.equal((await (await server()).inject({ url: '/metrics', remoteAddress })).statusCode, 200)
    })
  }

  for (const remoteAddress of ['192.0.2.1', '10.0.0.1', '::ffff:10.0.0.1', '2001:db8::1']) {
    it(`refuses ${remoteAddress} by default (HTTP-2)`, async () => {
      assert.equal((await (await server()).inject({ url: '/metrics', remoteAddress })).statusCode, 403)
      assert.equal(
        (await (await server('everyone')).inject({ url: '/metrics', remoteAddress })).statusCode,
        200,
      )
    })
  }

  for (const name of ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip']) {
    it(`refuses a proxy on this host (${name})`, async () => {
      const response = await (await server()).inject({ url: '/metrics', headers: { [name]: '127.0.0.1' } })
      assert.equal(response.statusCode, 403)
    })
  }
})
