/** Metrics, dashboard, alerts and traces of a gateway with PostgreSQL, in a process of its own. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { parse } from 'yaml'
import { startCollector } from './support/collector.ts'
import { postgresDatabases } from './support/databases.ts'
import { freePorts } from './support/free-ports.ts'
import { HttpUser } from './support/http-user.ts'
import { newPlace, type Place, type Started, startProcess } from './support/started.ts'

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const TRACEPARENT = `00-${TRACE_ID}-00f067aa0ba902b7-01`

const PATIENT = {
  resourceType: 'Patient',
  id: 'juniper',
  meta: { versionId: '1' },
  name: [{ family: 'Juniper' }],
}

/** An upstream with one patient, which keeps the headers of every request. */
async function startUpstream() {
  const requests: { readonly url: string; readonly traceparent: string | undefined }[] = []
  const server = createServer((request, response) => {
    const { url = '', headers } = request
    requests.push({ url, traceparent: headers.traceparent as string | undefined })
    const entry = url.startsWith('/Patient') ? [{ resource: PATIENT, search: { mode: 'match' } }] : []
    const body = url.startsWith('/metadata')
      ? { resourceType: 'CapabilityStatement', fhirVersion: '4.0.1', status: 'active' }
      : url.startsWith('/Patient/')
        ? PATIENT
        : { resourceType: 'Bundle', type: 'searchset', total: entry.length, entry }
    response.writeHead(200, { 'content-type': 'application/fhir+json' }).end(JSON.stringify(body))
  })
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, requests, close: () => server.close().closeAllConnections() }
}

describe('an observed gateway', () => {
  const postgres = postgresDatabases()
  let upstream: Awaited<ReturnType<typeof startUpstream>>
  let collector: Awaited<ReturnType<typeof startCollector>>
  let place: Place
  let started: Started
  let metricsUrl: string

  before(async () => {
    ;[upstream, collector] = await Promise.all([startUpstream(), startCollector()])
    const [metricsPort] = await freePorts(1)
    metricsUrl = `http://localhost:${metricsPort}/metrics`
    place = await newPlace({
      SMART_DATABASE_URL: await postgres.create(),
      SMART_FHIR_UPSTREAM_URL: upstream.url,
      SMART_METRICS_PORT: String(metricsPort),
      SMART_LOG_LEVEL: 'info',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '50',
    })
    started = startProcess(['start'], place)
    await started.printed(/is running/)
    await useEverything()
  })
  after(async () => {
    started.child.kill('SIGTERM')
    await started.ended()
    await collector.close()
    upstream.close()
    place.remove()
    await postgres.remove()
  })

  async function useEverything(): Promise<void> {
    const body = new URLSearchParams({ username: 'clinician', password: 'wrong' })
    await fetch(`${place.authUrl}/login`, { method: 'POST', body, redirect: 'manual' })
    const user = new HttpUser({
      settings: { issuerUrl: place.authUrl, appUrl: place.appUrl },
      user: { username: 'clinician', password: 'sallyport', name: 'Dr. Robin Ahmadi' },
    })
    await user.signIn()
    await user.launch('juniper')
    assert.equal((await user.api('summary', { traceparent: TRACEPARENT })).status, 200)
    await fetch(`${place.fhirUrl}/Patient/juniper`)
    started.child.kill('SIGHUP')
    await started.printed(/Settings reloaded/)
  }

  const readMetrics = async () => (await fetch(metricsUrl)).text()

  it('has its metrics on their own port, and not on the ports of the servers (METRIC-1, METRIC-2)', async () => {
    const text = await readMetrics()
    for (const url of [place.authUrl, place.fhirUrl, place.appUrl])
      assert.equal((await fetch(new URL('/metrics', url))).status, 404)
    for (const [line, least] of [
      ['sallyport_sign_ins_total{provider="password",outcome="success"}', 1],
      ['sallyport_sign_ins_total{provider="password",outcome="wrong"}', 1],
      ['sallyport_launches_total{outcome="issued"}', 1],
      ['sallyport_token_requests_total{grant_type="authorization_code",outcome="issued"}', 1],
      ['sallyport_decisions_total{outcome="allowed",reason="scope"}', 3],
      ['sallyport_decisions_total{outcome="refused",reason="no-bearer"}', 1],
      ['sallyport_cache_lookups_total{cache="token",result="hit"}', 1],
      ['sallyport_upstream_request_duration_seconds_count{method="GET",outcome="2xx"}', 3],
      ['sallyport_upstream_up', 1],
      ['sallyport_audit_write_duration_seconds_count{outcome="stored"}', 1],
      ['sallyport_audit_lag_seconds{feed="seal"}', 0],
      ['sallyport_database_connections_max', 10],
      ['sallyport_check_up{server="fhir",check="upstream"}', 1],
      ['sallyport_reloads_total{subject="settings",outcome="applied"}', 1],
    ] as const) {
      const found = text.split('\n').find(it => it.startsWith(`${line} `))
      assert.ok(Number(found?.split(' ').at(-1)) >= least, `${line}: ${found}`)
    }
  })

  it('names no patient, user or session in its metrics, and follows the conventions of Prometheus (METRIC-3)', async () => {
    const text = await readMetrics()
    assert.doesNotMatch(text, /juniper|clinician|ahmadi|sallyport-app/i)
    const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
    assert.equal(new Set(types.map(([, name]) => name)).size, types.length)
    for (const [, name = '', type] of types) {
      assert.match(text, new RegExp(`^# HELP ${name} .+\\.$`, 'm'))
      if (type === 'counter') assert.match(name, /_total$/)
      if (type === 'histogram') assert.match(name, /_seconds$/)
      if (type === 'gauge') assert.doesNotMatch(name, /_total$/)
    }
  })

  it('has every metric and label that the dashboard and the alerts use (METRIC-4)', async () => {
    // The certificate of this gateway is on its proxy.
    const text = `${await readMetrics()}sallyport_tls_certificate_expiry_timestamp_seconds 0\n`
    const labels = readLabels(text)
    const expressions = [...readDashboard(), ...readAlerts()]
    assert.ok(expressions.length > 30)
    for (const { expression, shown } of expressions) {
      const metrics = [...expression.matchAll(/\b((?:sallyport|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)]
      assert.ok(metrics.length > 0, expression)
      for (const [, metric = '', selector = ''] of metrics) {
        const known = labels.get(metric)
        assert.ok(known, `${metric} is not in /metrics`)
        for (const [, label = ''] of selector.matchAll(/(\w+)(?:=~|!~|!=|=)"/g))
          assert.ok(known.has(label), `${metric} has no label ${label}`)
      }
      const grouped = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = '']) =>
        names.split(', '),
      )
      for (const label of grouped)
        assert.ok(
          metrics.some(([, metric = '']) => labels.get(metric)?.has(label)),
          `${expression} has no label ${label}`,
        )
      for (const label of shown) assert.ok(grouped.includes(label), `${expression} does not keep ${label}`)
    }
  })

  it('passes the trace of a request on to every server and to the upstream (TRACE-1)', async () => {
    const findSpans = () => collector.spans.filter(({ traceId }) => traceId === TRACE_ID)
    const end = performance.now() + 5_000
    while (!findSpans().some(({ name }) => name === 'GET /api/summary') && performance.now() < end)
      await new Promise(done => setTimeout(done, 20))
    const spans = findSpans()
    const servers = new Set(spans.flatMap(({ attributes }) => attributes['sallyport.server'] ?? []))
    assert.deepEqual([...servers].sort(), ['app', 'fhir'])
    const ids = new Set(spans.map(({ spanId }) => spanId))
    for (const { parentSpanId = '', name } of spans)
      assert.ok(ids.has(parentSpanId) || name === 'GET /api/summary', `${name} has no parent`)
    const passed = upstream.requests.filter(({ traceparent }) => traceparent?.includes(TRACE_ID))
    assert.ok(passed.length >= 3)
    for (const { traceparent = '' } of passed) assert.ok(ids.has(traceparent.split('-')[2] ?? ''))
    assert.ok(started.stdout().includes(`"trace_id":"${TRACE_ID}"`))
    assert.doesNotMatch(JSON.stringify(collector.spans), /juniper|clinician|ahmadi|[?&]/i)
  })
})

/** The labels of every metric, as `/metrics` shows them, with those that Prometheus adds. */
function readLabels(text: string): ReadonlyMap<string, ReadonlySet<string>> {
  const labels = new Map<string, Set<string>>()
  for (const [, name = '', braces = ''] of text.matchAll(/^([a-z]\w*)(?:\{(.*)\})? \S+$/gm)) {
    const known = labels.get(name) ?? new Set(['instance', 'job'])
    for (const [, label = ''] of braces.matchAll(/(\w+)="/g)) known.add(label)
    labels.set(name, known)
  }
  return labels
}

interface Expression {
  readonly expression: string
  /** Labels that texts show. */
  readonly shown: readonly string[]
}

const read = (path: string) => readFileSync(resolve(import.meta.dirname, '..', path), 'utf8')

function readDashboard(): readonly Expression[] {
  const { panels } = JSON.parse(read('deploy/grafana/sallyport.json')) as {
    readonly panels: readonly {
      readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
    }[]
  }
  return panels.flatMap(({ targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({
      expression: expr,
      shown: [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label),
    })),
  )
}

function readAlerts(): readonly Expression[] {
  const { groups } = parse(read('deploy/prometheus/alerts.yaml')) as {
    readonly groups: readonly { readonly rules: readonly { readonly expr: string }[] }[]
  }
  return groups.flatMap(({ rules }) =>
    rules.map(rule => ({
      expression: rule.expr,
      shown: [...JSON.stringify(rule).matchAll(/\$labels\.(\w+)/g)].map(([, label = '']) => label),
    })),
  )
}
