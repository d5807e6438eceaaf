import { version } from '../ui/index.ts'
import type { Logger } from './logger.ts'
import { processMetrics } from './registry.ts'
import { type Span, setSpanSink } from './trace.ts'

/** How traces are exported, by OpenTelemetry's standard variables. */
export interface SpanExportOptions {
  /** The URL for traces, complete. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  /** Describes this service in every span. */
  readonly resource: Readonly<Record<string, string>>
  readonly sampler: {
    /** Whether the decision of the caller is followed, if there is one. */
    readonly isParentBased: boolean
    /** The part of the other traces that is sampled. */
    readonly ratio: number
  }
  readonly everyMs: number
  readonly batchSize: number
  readonly queueSize: number
}

const spans = processMetrics.counter({
  name: 'sallyport_spans_total',
  help: 'Spans of traces: exported, or dropped because the collector was unreachable.',
  labels: ['result'],
})

/** Sends the spans of this process to a collector (OTLP/HTTP with JSON), in batches, until it is stopped. */
export function startSpanExport(
  options: SpanExportOptions,
  logger: Pick<Logger, 'warn'>,
): { stop(): Promise<void> } {
  const { everyMs, batchSize, queueSize, sampler } = options
  let queue: Span[] = []
  let sending: Promise<void> | undefined
  let isFailing = false

  function add(span: Span): void {
    if (queue.length >= queueSize) spans.add(['dropped'])
    else queue.push(span)
    if (queue.length >= batchSize && !isFailing) void flush()
  }

  function flush(): Promise<void> {
    sending ??= sendAll().finally(() => {
      sending = undefined
    })
    return sending
  }

  async function sendAll(): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.slice(0, batchSize)
      const isAccepted = await send(batch)
      // A batch that was not accepted waits for the next attempt.
      if (!isAccepted) return
      queue = queue.slice(batch.length)
    }
  }

  async function send(batch: readonly Span[]): Promise<boolean> {
    try {
      const response = await fetch(options.url, {
        method: 'POST',
        body: JSON.stringify(formatSpans(options.resource, batch)),
        redirect: 'error',
        headers: { ...options.headers, 'content-type': 'application/json' },
        signal: AbortSignal.timeout(options.timeoutMs),
      })
      await response.body?.cancel()
      if (RETRYABLE.has(response.status)) return report(`status ${response.status}`)
      if (!response.ok) report(`status ${response.status}`)
      else if (isFailing) report(undefined)
      spans.add([response.ok ? 'exported' : 'dropped'], batch.length)
      return true
    } catch (error) {
      return report(error instanceof Error ? error.name : String(error))
    }
  }

  /** Logs the beginning and the end of an outage. */
  function report(reason: string | undefined): false {
    const { origin } = new URL(options.url)
    if (reason === undefined) logger.warn({ origin }, 'The collector accepts traces again')
    else if (!isFailing) logger.warn({ origin, reason }, 'Cannot export traces')
    isFailing = reason !== undefined
    return false
  }

  const timer = setInterval(() => void flush(), everyMs).unref()
  setSpanSink({ add, isSampled: (traceId, parent) => isSampled(sampler, traceId, parent) })
  return {
    async stop() {
      clearInterval(timer)
      setSpanSink(undefined)
      // The attempt that is under way may have begun before the collector recovered.
      await sending
      await flush()
      if (queue.length > 0) spans.add(['dropped'], queue.length)
    },
  }
}

/** OTLP specification: the responses after which a client sends the same request again. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504])

/** The last 56 bits of a trace id are random, and every service compares them in the same way. */
function isSampled(
  { isParentBased, ratio }: SpanExportOptions['sampler'],
  traceId: string,
  parent: boolean | undefined,
): boolean {
  if (isParentBased && parent !== undefined) return parent
  return Number.parseInt(traceId.slice(-14), 16) >= (1 - ratio) * 2 ** 56
}

/** An ExportTraceServiceRequest in the JSON encoding of OTLP. */
function formatSpans(resource: Readonly<Record<string, string>>, batch: readonly Span[]): object {
  const scope = { name: 'sallyport', version }
  return {
    resourceSpans: [
      {
        resource: { attributes: formatAttributes({ ...resource, 'service.version': version }) },
        scopeSpans: [{ scope, spans: batch.map(formatSpan) }],
      },
    ],
  }
}

const KINDS = { server: 2, client: 3 } as const
const ERROR = 2

function formatSpan({ kind, startedAt, endedAt, attributes, isError, parentSpanId, ...ids }: Span): object {
  return {
    ...ids,
    ...(parentSpanId !== undefined && { parentSpanId }),
    kind: KINDS[kind],
    startTimeUnixNano: formatTime(startedAt),
    endTimeUnixNano: formatTime(endedAt),
    attributes: formatAttributes(attributes),
    status: isError ? { code: ERROR } : {},
  }
}

function formatTime(ms: number): string {
  return `${Math.round(ms * 1000)}000`
}

function formatAttributes(attributes: Readonly<Record<string, string | number>>): readonly object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }))
}
