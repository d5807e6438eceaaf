import { IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Settings } from '../../config/index.ts'
import { STOP_MS } from '../../web/http/index.ts'
import type { ServerName } from './parts.ts'

/**
 * The servers of this process. `fetch` passes requests for them to their handlers, without a connection: hooks, checks
 * and records are the same, for less CPU time (decision 0238). All other requests go over the network, and so do those
 * that follow redirects or have a body that is not a form.
 */
export class OwnServers {
  readonly #origins: ReadonlyMap<ServerName, string>
  readonly #servers = new Map<string, OwnServer>()

  constructor(settings: ServerUrls) {
    this.#origins = findOrigins(settings)
  }

  /** Adds a server that does not listen yet. When it closes, it also finishes the requests of this process, or aborts them. */
  add(name: ServerName, app: FastifyInstance, stopMs = STOP_MS): void {
    const origin = this.#origins.get(name)
    if (origin === undefined) return
    const server = { app, running: new Set<OwnResponse>() }
    this.#servers.set(origin, server)
    app.addHook('preClose', async () => {
      this.#servers.delete(origin)
      await finishAll(server.running, stopMs)
    })
  }

  readonly fetch: typeof fetch = (input, init = {}) => {
    const { body = null, redirect = 'follow' } = init
    const isSimple = body === null || body instanceof URLSearchParams
    if (input instanceof Request || !isSimple || redirect === 'follow') return fetch(input, init)
    const url = new URL(input)
    const server = this.#servers.get(url.origin)
    return server ? send(server, url, init) : fetch(input, init)
  }
}

type ServerUrls = Pick<Settings, 'issuerUrl' | 'fhirBaseUrl' | 'appUrl'>

interface OwnServer {
  readonly app: FastifyInstance
  readonly running: Set<OwnResponse>
}

async function finishAll(running: ReadonlySet<OwnResponse>, stopMs: number): Promise<void> {
  const abort = () => {
    for (const response of running) response.destroy()
  }
  const timer = setTimeout(abort, stopMs)
  await Promise.allSettled([...running].map(it => it.collected))
  clearTimeout(timer)
}

/** The origins of servers, except of those that share one: a proxy knows which server has which path. */
function findOrigins({ issuerUrl, fhirBaseUrl, appUrl }: ServerUrls): ReadonlyMap<ServerName, string> {
  const origins = new Map([
    ['auth', new URL(issuerUrl).origin],
    ['fhir', new URL(fhirBaseUrl).origin],
    ['app', new URL(appUrl).origin],
  ] as const)
  const counts = Map.groupBy(origins.values(), origin => origin)
  return new Map([...origins].filter(([, origin]) => counts.get(origin)?.length === 1))
}

async function send({ app, running }: OwnServer, url: URL, init: RequestInit): Promise<Response> {
  const { redirect, signal } = init
  signal?.throwIfAborted()
  const request = createRequest(url, init)
  const response = new OwnResponse(request)
  const abort = () => response.destroy(signal?.reason)
  signal?.addEventListener('abort', abort)
  running.add(response)
  try {
    app.routing(request, response)
    const collected = await response.collected
    if (redirect === 'error' && REDIRECTS.has(collected.status)) throw new Error('unexpected redirect')
    return new CollectedResponse(url.href, collected)
  } catch (error) {
    throw signal?.aborted ? signal.reason : new TypeError('fetch failed', { cause: error })
  } finally {
    running.delete(response)
    signal?.removeEventListener('abort', abort)
  }
}

/** The redirect statuses of the Fetch standard. */
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

// Compression costs more than it saves.
const PLAIN = { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'node' }

function createRequest(url: URL, { method = 'GET', headers, body }: RequestInit): IncomingMessage {
  const request = new IncomingMessage(new OwnSocket(url.protocol === 'https:'))
  const form = body ? Buffer.from(String(body)) : null
  request.method = method
  request.url = url.pathname + url.search
  const fields: Record<string, string> = { host: url.host, ...PLAIN, ...(form && describeForm(form)) }
  for (const [name = '', value = ''] of listHeaders(headers)) fields[name.toLowerCase()] = value
  request.headers = fields
  request.rawHeaders = Object.entries(fields).flat()
  request.httpVersion = '1.1'
  request.httpVersionMajor = 1
  request.httpVersionMinor = 1
  request.complete = true
  if (form) request.push(form)
  request.push(null)
  return request
}

function listHeaders(headers: RequestInit['headers'] = {}): Iterable<readonly string[]> {
  return Symbol.iterator in headers ? headers : Object.entries(headers)
}

function describeForm(form: Buffer) {
  const type = 'application/x-www-form-urlencoded;charset=UTF-8'
  return { 'content-type': type, 'content-length': String(form.length) }
}

class OwnSocket extends Socket {
  override readonly remoteAddress = '127.0.0.1'
  readonly encrypted: boolean

  constructor(encrypted: boolean) {
    super()
    this.encrypted = encrypted
  }
}

interface Collected {
  readonly status: number
  readonly fields: OutgoingHttpHeaders
  readonly body: string
}

/** Collects a response that a connection would send. */
class OwnResponse extends ServerResponse {
  override headersSent = false
  #fields: OutgoingHttpHeaders = {}
  readonly #chunks: Buffer[] = []
  readonly #collected = Promise.withResolvers<Collected>()

  get collected(): Promise<Collected> {
    return this.#collected.promise
  }

  /** Fastify passes the names of headers in lower case. */
  override writeHead(status: number, fields: unknown = {}): this {
    this.statusCode = status
    this.#fields = fields as OutgoingHttpHeaders
    this.headersSent = true
    return this
  }

  override write(chunk: string | Uint8Array): boolean {
    this.headersSent = true
    this.#chunks.push(Buffer.from(chunk))
    return true
  }

  override end(chunk?: unknown): this {
    this.finished = true
    const body = this.#finishBody(chunk)
    this.#collected.resolve({
      status: this.statusCode,
      fields: { ...this.getHeaders(), ...this.#fields },
      body,
    })
    process.nextTick(() => {
      this.emit('finish')
      this.emit('close')
    })
    return this
  }

  #finishBody(chunk: unknown): string {
    if (typeof chunk === 'string' && this.#chunks.length === 0) return chunk
    if (typeof chunk === 'string' || chunk instanceof Uint8Array) this.write(chunk)
    return Buffer.concat(this.#chunks).toString()
  }

  /** The connection is lost: the response cannot be completed. */
  override destroy(error: Error = new Error('The response was cut off')): this {
    this.#collected.reject(error)
    this.req.socket.destroy()
    process.nextTick(() => this.emit('close'))
    return this
  }
}

/** A response without the streams of `Response`, which cost more than its content: it is read as text or JSON. */
class CollectedResponse extends Response {
  readonly #url: string
  readonly #collected: Collected
  #headers: Headers | undefined

  constructor(url: string, collected: Collected) {
    super(null, { status: collected.status })
    this.#url = url
    this.#collected = collected
  }

  override get url(): string {
    return this.#url
  }

  override get headers(): Headers {
    this.#headers ??= toHeaders(this.#collected.fields)
    return this.#headers
  }

  override async text(): Promise<string> {
    return this.#collected.body
  }

  override async json(): Promise<unknown> {
    return JSON.parse(this.#collected.body)
  }

  override clone(): CollectedResponse {
    return new CollectedResponse(this.#url, this.#collected)
  }
}

function toHeaders(fields: OutgoingHttpHeaders): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(fields))
    for (const part of [value ?? []].flat()) headers.append(name, String(part))
  return headers
}
