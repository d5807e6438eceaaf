import { AsyncLocalStorage } from 'node:async_hooks'
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { TRACE_CHARACTERS } from './limits.ts'

/** The position of a request in a trace (W3C Trace Context). */
export interface Trace {
  readonly traceId: string
  /** The span that further requests have as their parent. */
  readonly spanId: string
  readonly isSampled: boolean
  readonly state: string | undefined
  readonly span: OpenSpan | undefined
}

/** A span that has ended. Its attributes are methods, route patterns, statuses and hosts: no URL and no query. */
export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly kind: 'server' | 'client'
  /** In milliseconds since 1970. */
  readonly startedAt: number
  readonly endedAt: number
  readonly attributes: Readonly<Record<string, string | number>>
  readonly isError: boolean
}

type OpenSpan = Pick<Span, 'traceId' | 'spanId' | 'parentSpanId' | 'kind' | 'startedAt'>

/** Receives the spans of this process. */
export interface SpanSink {
  readonly isSampled: (traceId: string, parent: boolean | undefined) => boolean
  readonly add: (span: Span) => void
}

const storage = new AsyncLocalStorage<Trace>()
const traces = new WeakMap<IncomingMessage, Trace>()
let sink: SpanSink | undefined

/** Records spans from now on. Without a sink, `traceparent` is only passed on. */
export function setSpanSink(next: SpanSink | undefined): void {
  sink = next
}

/** The trace of a request, for its log lines. */
export function findTrace(raw: IncomingMessage): Trace | undefined {
  return traces.get(raw)
}

/** Continues the trace of the caller, or begins one if spans are recorded. */
export function addTracing(app: FastifyInstance, server: string): void {
  app.addHook('onRequest', ({ raw }, _reply, done) => {
    const trace = openTrace(raw.headers)
    if (!trace) return done()
    traces.set(raw, trace)
    storage.run(trace, done)
  })
  // The events of a body that arrives belong to the connection, not to the request.
  app.addHook('preValidation', ({ raw }, _reply, done) => {
    const trace = traces.get(raw)
    if (trace) storage.run(trace, done)
    else done()
  })
  app.addHook('onResponse', (request, { statusCode }, done) => {
    const span = traces.get(request.raw)?.span
    if (span) {
      const { method } = request
      const route = request.is404 ? undefined : request.routeOptions.url
      endSpan(span, route === undefined ? method : `${method} ${route}`, statusCode, {
        'sallyport.server': server,
        'http.request.method': method,
        ...(route !== undefined && { 'http.route': route }),
      })
    }
    done()
  })
}

function openTrace(headers: IncomingMessage['headers']): Trace | undefined {
  const parent = readTraceparent(headers.traceparent)
  if (!sink) return parent && { ...parent, state: readTracestate(headers.tracestate), span: undefined }
  const traceId = parent?.traceId ?? createId(16)
  const isSampled = sink.isSampled(traceId, parent?.isSampled)
  const span = isSampled ? openSpan('server', { traceId, spanId: parent?.spanId }) : undefined
  const spanId = span?.spanId ?? parent?.spanId ?? createId(8)
  return { traceId, spanId, isSampled, state: parent && readTracestate(headers.tracestate), span }
}

/** A request to another server, as part of the current trace. */
export interface ClientSpan {
  /** Send these with the request. */
  readonly headers: Readonly<Record<string, string>>
  /** Without a status there was no response. */
  end(status?: number): void
}

/** Undefined outside of a trace. */
export function startClientSpan(method: string, origin: string): ClientSpan | undefined {
  const trace = storage.getStore()
  if (!trace) return undefined
  const span = trace.span && openSpan('client', trace)
  return {
    headers: formatHeaders(span ? { ...trace, spanId: span.spanId } : trace),
    end(status) {
      if (!span) return
      const { hostname, port, protocol } = new URL(origin)
      endSpan(span, method, status, {
        'http.request.method': method,
        'server.address': hostname,
        'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
      })
    },
  }
}

function formatHeaders({ traceId, spanId, isSampled, state }: Trace): Readonly<Record<string, string>> {
  return {
    traceparent: `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`,
    ...(state !== undefined && { tracestate: state }),
  }
}

function openSpan(
  kind: Span['kind'],
  { traceId, spanId }: { readonly traceId: string; readonly spanId: string | undefined },
): OpenSpan {
  return { traceId, spanId: createId(8), parentSpanId: spanId, kind, startedAt: readTime() }
}

function endSpan(
  span: OpenSpan,
  name: string,
  status: number | undefined,
  attributes: Span['attributes'],
): void {
  sink?.add({
    ...span,
    name,
    endedAt: readTime(),
    attributes: { ...attributes, ...(status !== undefined && { 'http.response.status_code': status }) },
    // OpenTelemetry: 4xx is an error of the client only.
    isError: status === undefined || status >= (span.kind === 'client' ? 400 : 500),
  })
}

function readTime(): number {
  return performance.timeOrigin + performance.now()
}

function createId(bytes: number): string {
  return randomBytes(bytes).toString('hex')
}

// A later version may have further fields after the flags.
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** W3C Trace Context, 3.2. An invalid header is ignored. */
function readTraceparent(
  header: string | readonly string[] | undefined,
): Pick<Trace, 'traceId' | 'spanId' | 'isSampled'> | undefined {
  if (typeof header !== 'string' || header.length > TRACE_CHARACTERS) return undefined
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(header) ?? []
  if (!traceId || !spanId || !flags || (version === '00' && more !== undefined)) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

function readTracestate(header: string | readonly string[] | undefined): string | undefined {
  const text = typeof header === 'string' ? header : header?.join(',')
  return text !== undefined && text !== '' && text.length <= TRACE_CHARACTERS ? text : undefined
}
