import { on } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request to the upstream. */
export interface Seen {
  readonly line: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export interface HostileUpstream {
  readonly url: string
  /** All requests so far, without those for `metadata`. */
  readonly seen: readonly Seen[]
  /** Sets the responses to further requests. */
  answer(handler: UpstreamHandler): void
  /** Sets the response to further requests for `metadata`; the default is a CapabilityStatement. */
  answerMetadata(handler: UpstreamHandler): void
  /** Answers every further request with this JSON. */
  answerJson(body: unknown, status?: number, headers?: Readonly<Record<string, string>>): void
  /** Resolves when the next request with this method begins to arrive. */
  awaitRequest(method: string): Promise<void>
  close(): Promise<void>
  /** Listens again on the same port. */
  reopen(): Promise<void>
}

/** The line of a request, decoded, without the page size that the gateway adds to a search which is not stored. */
export function describeLine({ line, headers }: Seen): string {
  const decoded = decodeURIComponent(line)
  return /no-store/.test(headers['cache-control'] ?? '') ? decoded.replace(/[?&]_count=20$/, '') : decoded
}

export type UpstreamHandler = (request: IncomingMessage, response: ServerResponse, body: string) => void

/** A server whose responses a test sets. */
export async function startHostile(): Promise<HostileUpstream> {
  const seen: Seen[] = []
  let handler: UpstreamHandler = (_request, response) => response.writeHead(404).end()
  let metadata: UpstreamHandler = (_request, response) => json(response, METADATA)
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', chunk => {
      body += chunk
    })
    request.on('end', () => {
      if (/\/metadata(?:\?|$)/.test(request.url ?? '')) return metadata(request, response, body)
      seen.push({ line: `${request.method} ${request.url}`, headers: request.headers, body })
      handler(request, response, body)
    })
  })
  const open = (port: number) => new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  await open(0)
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/up`,
    seen,
    answer: next => {
      handler = next
    },
    answerMetadata: next => {
      metadata = next
    },
    answerJson: (body, status = 200, headers = {}) => {
      handler = (_request, response) => json(response, body, status, headers)
    },
    async awaitRequest(method) {
      for await (const [request] of on(server, 'request')) if (request.method === method) return
    },
    close: () =>
      new Promise(resolve => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
    reopen: () => open(port),
  }
}

export const METADATA = {
  resourceType: 'CapabilityStatement',
  status: 'active',
  kind: 'instance',
  fhirVersion: '4.0.1',
  format: ['xml', 'json'],
  messaging: [{ documentation: 'x' }],
  rest: [
    {
      mode: 'server',
      security: { description: 'none at all' },
      interaction: [{ code: 'transaction' }, { code: 'shutdown' }],
      operation: [{ name: 'export', definition: 'http://x' }],
      resource: [
        {
          type: 'Patient',
          interaction: [{ code: 'read' }, { code: 'drop-table' }],
          operation: [
            { name: 'everything', definition: 'http://x' },
            { name: 'match', definition: 'http://x' },
          ],
        },
        { type: 'AuditEvent', interaction: [{ code: 'read' }] },
        { type: 'Nonsense', interaction: [{ code: 'read' }] },
      ],
    },
  ],
}

export function json(
  response: ServerResponse,
  body: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): void {
  response
    .writeHead(status, { 'content-type': 'application/fhir+json', ...headers })
    .end(JSON.stringify(body))
}

/** A searchset of these resources, by default all as matches. */
export function searchset(resources: readonly object[], more: object = {}): object {
  return {
    resourceType: 'Bundle',
    type: 'searchset',
    entry: resources.map(resource => ({ resource, search: { mode: 'match' } })),
    ...more,
  }
}
