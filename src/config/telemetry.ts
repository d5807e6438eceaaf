import type { SpanExportOptions } from '../web/http/index.ts'
import { readSecretFile } from './secret-file.ts'
import { readEach, SettingsError } from './settings-error.ts'

type Environment = Readonly<Record<string, string | undefined>>

const DEFAULT_URL = 'http://localhost:4318'

/** Undefined unless the environment names a collector, or `OTEL_TRACES_EXPORTER` is `otlp`. */
export function readTelemetry(env: Environment, cwd: string): SpanExportOptions | undefined {
  const exporter = env.OTEL_TRACES_EXPORTER || undefined
  const base = env.OTEL_EXPORTER_OTLP_ENDPOINT || undefined
  const full = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || undefined
  const isNamed = exporter === 'otlp' || base !== undefined || full !== undefined
  if (env.OTEL_SDK_DISABLED === 'true' || exporter === 'none' || !(isNamed || exporter !== undefined))
    return undefined
  const number =
    (name: string, initial: number, min = 1) =>
    () =>
      readNumber(env, name, initial, min)
  const parts = {
    exporter: () =>
      requireValid('OTEL_TRACES_EXPORTER', exporter ?? 'otlp', 'otlp or none', it => it === 'otlp'),
    protocol: () => readProtocol(env),
    url: () => readUrl(full, base ?? DEFAULT_URL),
    headers: () => readHeaders(env, cwd),
    resource: () => readResource(env),
    sampler: () => readSampler(env),
    timeoutMs: number('OTEL_EXPORTER_OTLP_TIMEOUT', 10_000),
    everyMs: number('OTEL_BSP_SCHEDULE_DELAY', 5_000),
    batchSize: number('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512),
    queueSize: number('OTEL_BSP_MAX_QUEUE_SIZE', 2_048),
  }
  const read = readEach(Object.entries(parts), ([name, readPart]) => [name, readPart()] as const)
  const { exporter: _, protocol: __, ...settings } = Object.fromEntries(read)
  return settings as unknown as SpanExportOptions
}

function requireValid(
  name: string,
  text: string,
  expected: string,
  isValid: (text: string) => boolean,
): string {
  if (!isValid(text)) throw new SettingsError(`Cannot use ${name}: expected ${expected}`)
  return text
}

function findGiven(env: Environment, name: string): string | undefined {
  return env[name.replace('OTLP_', 'OTLP_TRACES_')] || env[name] || undefined
}

/** A collector that accepts protobuf over HTTP accepts JSON on the same URL, and gRPC has its own port. */
function readProtocol(env: Environment): string {
  const name = 'OTEL_EXPORTER_OTLP_PROTOCOL'
  const protocol = findGiven(env, name) ?? 'http/json'
  return requireValid(name, protocol, 'http/json or http/protobuf', it => it.startsWith('http/'))
}

function readUrl(full: string | undefined, base: string): string {
  const [name, url] =
    full === undefined
      ? ['OTEL_EXPORTER_OTLP_ENDPOINT', `${base.replace(/\/+$/, '')}/v1/traces`]
      : ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', full]
  return requireValid(name, url, 'an http or https URL without a login', text => {
    const parsed = URL.parse(text)
    return parsed !== null && /^https?:$/.test(parsed.protocol) && parsed.username === ''
  })
}

function readHeaders(env: Environment, cwd: string): Readonly<Record<string, string>> {
  const name = 'OTEL_EXPORTER_OTLP_HEADERS'
  const file = findGiven(env, `${name}_FILE`)
  const text = file === undefined ? findGiven(env, name) : readSecretFile(file, cwd, `${name}_FILE`)
  return readPairs(name, text ?? '')
}

function readResource(env: Environment): Readonly<Record<string, string>> {
  const name = 'OTEL_RESOURCE_ATTRIBUTES'
  const service = env.OTEL_SERVICE_NAME || undefined
  return {
    'service.name': 'sallyport',
    ...readPairs(name, env[name] ?? ''),
    ...(service !== undefined && { 'service.name': service }),
  }
}

/** W3C Baggage: `name=value` pairs with percent-encoding. */
function readPairs(name: string, text: string): Readonly<Record<string, string>> {
  const pairs = text.split(',').flatMap(pair => (pair.trim() === '' ? [] : [pair.trim()]))
  try {
    return Object.fromEntries(
      pairs.map(pair => {
        const [, key = '', value = ''] = /^([^=\s]+)\s*=\s*(.*)$/.exec(pair) ?? []
        if (key === '') throw new Error('no name')
        return [decodeURIComponent(key), decodeURIComponent(value)]
      }),
    )
  } catch {
    throw new SettingsError(`Cannot use ${name}: expected name=value pairs, separated by commas`)
  }
}

const SAMPLERS: Readonly<Record<string, 'ratio' | 0 | 1>> = {
  always_on: 1,
  always_off: 0,
  traceidratio: 'ratio',
}

function readSampler(env: Environment): SpanExportOptions['sampler'] {
  const name = env.OTEL_TRACES_SAMPLER || 'parentbased_always_on'
  const ratio = SAMPLERS[name.replace(/^parentbased_/, '')]
  if (ratio === undefined)
    throw new SettingsError(
      'Cannot use OTEL_TRACES_SAMPLER: expected always_on, always_off or traceidratio, with or without parentbased_ before it',
    )
  const isParentBased = name.startsWith('parentbased_')
  if (ratio !== 'ratio') return { isParentBased, ratio }
  const text = env.OTEL_TRACES_SAMPLER_ARG || '1'
  requireValid(
    'OTEL_TRACES_SAMPLER_ARG',
    text,
    'a number from 0 to 1',
    it => Number(it) >= 0 && Number(it) <= 1,
  )
  return { isParentBased, ratio: Number(text) }
}

function readNumber(env: Environment, name: string, initial: number, min: number): number {
  const text = findGiven(env, name) ?? String(initial)
  requireValid(
    name,
    text,
    `a whole number of at least ${min}`,
    it => /^\d{1,9}$/.test(it) && Number(it) >= min,
  )
  return Number(text)
}
