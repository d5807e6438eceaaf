import type { IncomingHttpHeaders } from 'node:http'
import { promisify } from 'node:util'
import { brotliDecompress, unzip } from 'node:zlib'
import type { Dispatcher } from 'undici'
import type { Settings } from '../../config/index.ts'

/** The connections of `fetch`, which opens them on its first request (undici, `getGlobalDispatcher`). */
const CONNECTIONS = Symbol.for('undici.globalDispatcher.2')

/**
 * `fetch` for requests between our servers, for a third of its CPU time. It sends requests without a body, and forms; it
 * follows no redirects, and collects the whole response, whatever its size: requests to other servers are those of `fetch`.
 */
export function createLightFetch({
  issuerUrl,
  fhirBaseUrl,
  appUrl,
}: Pick<Settings, 'issuerUrl' | 'fhirBaseUrl' | 'appUrl'>): typeof fetch {
  const origins = new Set([issuerUrl, fhirBaseUrl, appUrl].map(url => new URL(url).origin))
  return (input, init = {}) => {
    const { body = null, redirect = 'follow' } = init
    const connections: Dispatcher | undefined = Reflect.get(globalThis, CONNECTIONS)
    const hasForm = body instanceof URLSearchParams
    if (!connections || input instanceof Request || !(body === null || hasForm) || redirect === 'follow')
      return fetch(input, init)
    const url = new URL(input)
    return origins.has(url.origin) ? send(connections, url, init) : fetch(input, init)
  }
}

async function send(connections: Dispatcher, url: URL, init: RequestInit): Promise<Response> {
  const { redirect, signal } = init
  try {
    signal?.throwIfAborted()
    const answer = await exchange(connections, toOptions(url, init), signal)
    if (redirect === 'error' && answer.headers.location !== undefined && answer.status < 400)
      throw new Error('unexpected redirect')
    return await toResponse(answer, url.href)
  } catch (error) {
    throw signal?.aborted ? signal.reason : new TypeError('fetch failed', { cause: error })
  }
}

// Compression costs both servers more than the transfer between them.
const PLAIN = { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'node' }
const FORM = { ...PLAIN, 'content-type': 'application/x-www-form-urlencoded;charset=UTF-8' }

function toOptions(
  { origin, pathname, search }: URL,
  { method = 'GET', headers, body }: RequestInit,
): Dispatcher.DispatchOptions {
  return {
    ...{ origin, path: pathname + search, method: method as Dispatcher.HttpMethod },
    headers: { ...(body ? FORM : PLAIN), ...Object.fromEntries(new Headers(headers)) },
    body: body ? String(body) : null,
  }
}

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer<ArrayBuffer>
}

function exchange(
  connections: Dispatcher,
  options: Dispatcher.DispatchOptions,
  signal: AbortSignal | null | undefined,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const chunks: Buffer[] = []
  let head: Pick<Answer, 'status' | 'headers'> = { status: 0, headers: {} }
  let control: Dispatcher.DispatchController | undefined
  const abort = () => {
    control?.abort(signal?.reason)
    reject(signal?.reason)
  }
  signal?.addEventListener('abort', abort)
  connections.dispatch(options, {
    onRequestStart(controller) {
      control = controller
      if (signal?.aborted) abort()
    },
    onResponseStart(_controller, status, headers) {
      head = { status, headers }
    },
    onResponseData(_controller, chunk) {
      chunks.push(chunk)
    },
    onResponseEnd: () => resolve({ ...head, body: Buffer.concat(chunks) }),
    onResponseError: (_controller, error) => reject(error),
  })
  return promise.finally(() => signal?.removeEventListener('abort', abort))
}

/** The statuses of responses without a body (Fetch standard, 2.2.3). */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304])

async function toResponse({ status, headers, body }: Answer, url: string): Promise<Response> {
  const fields = new Headers()
  for (const [name, value] of Object.entries(headers))
    for (const one of [value ?? []].flat()) fields.append(name, one)
  const decode = DECODERS.get(headers['content-encoding'] ?? '')
  const content = BODILESS.has(status) ? null : decode ? await decode(body) : body
  return Object.defineProperty(new Response(content, { status, headers: fields }), 'url', { value: url })
}

/** For servers that compress in any case. */
const DECODERS = new Map([
  ['br', promisify(brotliDecompress)],
  ...['gzip', 'x-gzip', 'deflate'].map(name => [name, promisify(unzip)] as const),
])
