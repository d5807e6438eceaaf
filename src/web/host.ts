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
