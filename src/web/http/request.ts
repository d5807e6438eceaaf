import type { IncomingMessage } from 'node:http'
import { isIPv6 } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { takeRandomBytes } from '../../core/index.ts'
import { findJsonExcess } from '../../fhir/index.ts'
import { DRAIN_BYTES, DRAIN_MS } from './limits.ts'

const SAFE = /^[A-Za-z0-9][A-Za-z0-9._:-]{3,63}$/

/** Crockford's base 32: no letter can be mistaken for a digit when the reference is read out on the phone. */
const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Creates a request id such as `7F3K-92QD-0XTB`, which is also the reference on an error page. */
export function createRequestId(random: (size: number) => Uint8Array = takeRandomBytes): string {
  const bytes = random(12)
  let id = ''
  for (let index = 0; index < 12; index++) {
    if (index === 4 || index === 8) id += '-'
    id += LETTERS[(bytes[index] ?? 0) % 32]
  }
  return id
}

/** Returns the caller's id if it is short and safe to log and to echo, else a new one. */
export function readRequestId(header: string | readonly string[] | undefined): string {
  return typeof header === 'string' && SAFE.test(header) ? header : createRequestId()
}

/**
 * Returns the network by which requests are counted: an IPv4 address itself, or the first 64 bits of an IPv6 address,
 * which one subscriber has (RFC 6177).
 */
export function findNetwork(address: string): string {
  return findPrefix(address, 4)
}

/**
 * Returns the site by which stored requests are counted: an IPv4 address itself, or the first 48 bits of an IPv6 address,
 * which an organization has (RFC 6177). Within them, one machine can use 65,536 networks.
 */
export function findSite(address: string): string {
  return findPrefix(address, 3)
}

function findPrefix(address: string, groupCount: number): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address
  const [plain = ''] = address.split('%')
  const [head = '', tail] = plain.split('::')
  const groups = head.split(':').filter(group => group !== '')
  const rest = tail?.split(':').filter(group => group !== '') ?? []
  const zeros = Array.from({ length: 8 - groups.length - rest.length }, () => '0')
  const all = tail === undefined ? groups : [...groups, ...zeros, ...rest]
  return `${all
    .slice(0, groupCount)
    .map(group => Number.parseInt(group, 16).toString(16))
    .join(':')}::/${16 * groupCount}`
}

/**
 * Whether a request has more than one `Host` header (RFC 9112, 3.2: such a request is refused). Node silently keeps the
 * first; a proxy may have routed by the second.
 */
export function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (name.length === HOST.length && name.toLowerCase() === HOST) hosts += 1
  }
  return hosts > 1
}

const HOST = 'host'

const ABSOLUTE = /^https?:\/\/([^/?#]*)/i
const HOST_AND_PORT = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{0,5})?$/i

type Target = Pick<IncomingMessage, 'url' | 'headers'>

/**
 * Returns the host of a request with its port. An absolute request target takes precedence over `Host` (RFC 9112, 3.2.2).
 * `X-Forwarded-Host` is ignored, even of a trusted proxy, which may pass on the header of a page. Only an HTTP/1.0 request,
 * which no browser sends, may have no host.
 */
function findHost({ url = '', headers }: Target): string | undefined {
  return url.startsWith('/') ? headers.host : (ABSOLUTE.exec(url)?.[1] ?? headers.host)
}

/** Returns the host of a request without the port, or an empty string if it is malformed. */
export function findHostName(target: Target): string | undefined {
  const host = findHost(target)
  return host === undefined ? undefined : (HOST_AND_PORT.exec(host)?.[1] ?? '')
}

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Whether another site sent this form (HTTP-3), according to `Sec-Fetch-Site` or, in its absence, `Origin`. A request
 * that has neither comes from a script or a very old browser, and is accepted.
 */
export function isCrossSite(request: FastifyRequest, ownOrigins: readonly string[]): boolean {
  if (SAFE_METHODS.has(request.method)) return false
  const site = request.headers['sec-fetch-site']
  if (site !== undefined) return site !== 'same-origin' && site !== 'none'
  const origin = request.headers.origin
  return origin !== undefined && !isOwn(origin, request, ownOrigins)
}

/**
 * Whether a page of another site may have opened this URL in a browser. Over plain http, browsers send no `Sec-Fetch-Site`,
 * except to loopback: then only the referrer shows that it was a page of ours. Programs do not request HTML.
 */
export function isOpenedByOtherSite(request: FastifyRequest, ownUrl: string): boolean {
  const { 'sec-fetch-site': site, accept = '', referer = '' } = request.headers
  if (site !== undefined) return site === 'cross-site'
  const origin = URL.parse(referer)?.origin ?? ''
  return accept.includes('text/html') && !isOwn(origin, request, [new URL(ownUrl).origin])
}

/** Whether a page of this server, or the user in the address bar, opened this URL. */
export function isSentByOwnPage(request: FastifyRequest, ownUrl: string): boolean {
  const { 'sec-fetch-site': site, referer = '' } = request.headers
  if (site !== undefined) return site === 'same-origin' || site === 'none'
  return isOwn(URL.parse(referer)?.origin ?? '', request, [new URL(ownUrl).origin])
}

/** The configured origin (behind a proxy), or that of the connection (`127.0.0.1` for `localhost`). */
function isOwn(origin: string, { raw }: FastifyRequest, ownOrigins: readonly string[]): boolean {
  const protocol = 'encrypted' in raw.socket ? 'https' : 'http'
  return ownOrigins.includes(origin) || origin === `${protocol}://${findHost(raw)}`
}

/** The code of the error for a body that exceeds the JSON limits. */
export const JSON_EXCESS = 'JSON_EXCESS'

/** Refuses JSON that is nested too deeply: serializing it again would overflow the stack. */
export function boundJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body: string, done) => {
    if (findJsonExcess(body))
      done(Object.assign(new Error('Too much JSON'), { statusCode: 400, code: JSON_EXCESS }))
    else parse(request, body, done)
  })
}

/**
 * Reads and discards the rest of a request body that the server does not need, after a 413 or a 401. Closing the
 * connection at once would reset it, and a client that sends the whole body before it reads would never see the response
 * (RFC 9112, 9.6). With `Connection: close` the server closes its own direction first, and the whole connection after
 * the body.
 */
export function drainUnread(app: FastifyInstance, largestBody = 0): void {
  // The refusal of a body that is somewhat too large must arrive too.
  const limit = Math.max(DRAIN_BYTES, 2 * largestBody)
  app.addHook('onSend', ({ raw }, _reply, payload, done) => {
    if (!raw.complete && hasBody(raw)) drain(raw, limit)
    done(null, payload)
  })
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined
}

function drain(request: IncomingMessage, limit: number): void {
  const { socket } = request
  let left = limit
  const close = () => request.destroy()
  const timer = setTimeout(close, DRAIN_MS).unref()
  // Node calls this when the last response of a connection is written.
  const { destroySoon } = socket
  socket.destroySoon = () => socket.end()
  request
    .on('data', (chunk: Buffer) => {
      left -= chunk.length
      if (left < 0) close()
      else timer.refresh()
    })
    .once('end', () => {
      clearTimeout(timer)
      socket.destroySoon = destroySoon
      if (socket.writableEnded) socket.destroySoon()
    })
    .once('close', () => clearTimeout(timer))
    .resume()
}

/**
 * How many seconds ago a user was active, as the script of a page or our app reports it. Undefined if it is no number. A wrong
 * number can only make the idle time shorter.
 */
export function parseIdleSeconds(text: unknown): number | undefined {
  const seconds = typeof text === 'string' && text.trim() !== '' ? Number(text) : Number.NaN
  return seconds >= 0 && Number.isFinite(seconds) ? seconds : undefined
}
