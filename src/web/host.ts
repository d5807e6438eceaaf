import type { IncomingMessage } from 'node:http'

/**
 * Whether a request names more than one host (RFC 9112, 3.2: then it is refused). Node keeps the first and says nothing;
 * a proxy before it may have gone by the other.
 */
export function namesTwoHosts(rawHeaders: readonly string[]): boolean {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (name.length === HOST.length && name.toLowerCase() === HOST) hosts += 1
  }
  return hosts > 1
}

const HOST = 'host'

const ABSOLUTE = /^https?:\/\/([^/?#]*)/i
const HOST_AND_PORT = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{0,5})?$/i

/**
 * Finds the host that a request names, without the port; an empty text where it cannot be read. An absolute target comes
 * before `Host` (RFC 9112, 3.2.2). `X-Forwarded-Host` does not count: a page can set it. Only HTTP/1.0, which no browser
 * speaks, may name none.
 */
export function findHostName({
  url = '',
  headers,
}: Pick<IncomingMessage, 'url' | 'headers'>): string | undefined {
  const named = url.startsWith('/') ? headers.host : (ABSOLUTE.exec(url)?.[1] ?? headers.host)
  return named === undefined ? undefined : (HOST_AND_PORT.exec(named)?.[1] ?? '')
}
