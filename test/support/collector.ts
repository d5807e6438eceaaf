import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

export interface CollectedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly kind: number
  readonly isError: boolean
  readonly attributes: Readonly<Record<string, string | number>>
  readonly resource: Readonly<Record<string, string | number>>
}

type Wire = Readonly<Record<string, unknown>>

/** A collector of traces. It accepts what the OTLP specification 1.x allows as JSON, and fails on anything else. */
export async function startCollector() {
  const spans: CollectedSpan[] = []
  const state = { status: 200, requests: 0, authorization: '' }
  const server = createServer(async (request, response) => {
    try {
      state.requests += 1
      state.authorization = request.headers.authorization ?? ''
      assert.deepEqual([request.method, request.url], ['POST', '/v1/traces'])
      assert.equal(request.headers['content-type'], 'application/json')
      const read = readExport((await json(request)) as Wire)
      if (state.status === 200) spans.push(...read)
      response.writeHead(state.status, { 'content-type': 'application/json' }).end('{}')
    } catch (error) {
      response.writeHead(400).end(String(error))
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    state,
    close: () => new Promise(resolve => server.close(resolve).closeAllConnections()),
  }
}

function readExport(body: Wire): readonly CollectedSpan[] {
  onlyHas(body, ['resourceSpans'])
  return list(body.resourceSpans).flatMap(group => {
    onlyHas(group, ['resource', 'scopeSpans'])
    const resource = readAttributes((group.resource as Wire).attributes)
    assert.equal(typeof resource['service.name'], 'string')
    return list(group.scopeSpans).flatMap(scope => list(scope.spans).map(span => readSpan(span, resource)))
  })
}

const SPAN = ['traceId', 'spanId', 'parentSpanId', 'name', 'kind', 'startTimeUnixNano', 'endTimeUnixNano']

function readSpan(span: Wire, resource: CollectedSpan['resource']): CollectedSpan {
  onlyHas(span, [...SPAN, 'attributes', 'status'])
  const { traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano } = span
  assert.match(String(traceId), /^(?!0{32})[0-9a-f]{32}$/)
  for (const id of [spanId, parentSpanId ?? spanId]) assert.match(String(id), /^(?!0{16})[0-9a-f]{16}$/)
  // 64-bit integers are strings in JSON.
  for (const time of [startTimeUnixNano, endTimeUnixNano]) assert.match(String(time), /^\d{19}$/)
  assert.equal(typeof startTimeUnixNano, 'string')
  assert.ok(BigInt(String(endTimeUnixNano)) >= BigInt(String(startTimeUnixNano)))
  assert.ok([1, 2, 3, 4, 5].includes(Number(kind)))
  const { code = 0 } = span.status as { readonly code?: number }
  return {
    traceId: String(traceId),
    spanId: String(spanId),
    name: String(name),
    kind: Number(kind),
    resource,
    parentSpanId: parentSpanId === undefined ? undefined : String(parentSpanId),
    isError: code === 2,
    attributes: readAttributes(span.attributes),
  }
}

function readAttributes(value: unknown): Readonly<Record<string, string | number>> {
  return Object.fromEntries(
    list(value).map(({ key, value: wire }) => {
      const { stringValue, intValue } = wire as Wire
      assert.equal(typeof (stringValue ?? intValue), 'string')
      return [String(key), stringValue === undefined ? Number(intValue) : String(stringValue)]
    }),
  )
}

function list(value: unknown): readonly Wire[] {
  assert.ok(Array.isArray(value))
  return value
}

function onlyHas(value: Wire, names: readonly string[]): void {
  assert.deepEqual(
    Object.keys(value).filter(name => !names.includes(name)),
    [],
  )
}
