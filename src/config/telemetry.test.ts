import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readTelemetry } from './telemetry.ts'

const read = (env: Record<string, string>) => readTelemetry(env, '.')
const COLLECTOR = { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://otel.example/' }

describe('the export of traces', () => {
  it('is off unless a collector or the exporter is named (TRACE-2)', () => {
    assert.equal(read({}), undefined)
    assert.equal(read({ OTEL_SERVICE_NAME: 'a', OTEL_TRACES_SAMPLER: 'always_on' }), undefined)
    assert.equal(read({ ...COLLECTOR, OTEL_SDK_DISABLED: 'true' }), undefined)
    assert.equal(read({ ...COLLECTOR, OTEL_TRACES_EXPORTER: 'none' }), undefined)
    assert.equal(read({ OTEL_TRACES_EXPORTER: 'otlp' })?.url, 'http://localhost:4318/v1/traces')
  })

  it('follows the standard variables (TRACE-2)', () => {
    const settings = read({
      ...COLLECTOR,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20key, x-tenant = a',
      OTEL_RESOURCE_ATTRIBUTES: 'service.name=other,deployment.environment=test',
      OTEL_SERVICE_NAME: 'hospital',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.25',
      OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '2000',
      OTEL_BSP_SCHEDULE_DELAY: '100',
    })
    assert.deepEqual(settings, {
      url: 'https://otel.example/v1/traces',
      headers: { authorization: 'Bearer key', 'x-tenant': 'a' },
      resource: { 'service.name': 'hospital', 'deployment.environment': 'test' },
      sampler: { isParentBased: true, ratio: 0.25 },
      timeoutMs: 2000,
      everyMs: 100,
      batchSize: 512,
      queueSize: 2048,
    })
    const url = 'http://otel.example/custom'
    assert.equal(read({ ...COLLECTOR, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url })?.url, url)
    assert.deepEqual(read(COLLECTOR)?.sampler, { isParentBased: true, ratio: 1 })
    assert.deepEqual(read({ ...COLLECTOR, OTEL_TRACES_SAMPLER: 'always_off' })?.sampler, {
      isParentBased: false,
      ratio: 0,
    })
  })

  for (const [name, value] of [
    ['OTEL_TRACES_EXPORTER', 'zipkin'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'otel.example:4318'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://me:secret@otel.example'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'secret'],
    ['OTEL_TRACES_SAMPLER', 'some'],
    ['OTEL_EXPORTER_OTLP_TIMEOUT', 'soon'],
  ] as const)
    it(`stops the start at ${name}=${value}, without the value`, () => {
      assert.throws(
        () => read({ ...COLLECTOR, [name]: value }),
        ({ message }: Error) => message.startsWith(`Cannot use ${name}: `) && !message.includes('secret'),
      )
    })

  it('lists every problem', () => {
    const env = { ...COLLECTOR, OTEL_TRACES_SAMPLER: 'some', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }
    assert.throws(() => read(env), /OTEL_EXPORTER_OTLP_PROTOCOL.*\n.*OTEL_TRACES_SAMPLER/)
  })
})
