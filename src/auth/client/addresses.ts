import { isLoopbackHost } from '../../config/index.ts'
import { isPlainHost } from '../../web/index.ts'

/** What is wrong with the redirect address of a client (RFC 6749, 3.1.2; RFC 8252, 7), or undefined. */
export function redirectUriFault(text: string): string | undefined {
  const url = absolute(text)
  if (typeof url === 'string') return url
  return url.protocol === 'https:' || isLoopbackHttp(url) || isPrivateUse(url)
    ? undefined
    : 'expected https, http on loopback, or a private-use scheme'
}

/** What is wrong with a URL that an app is launched at. An app with a hash router has a fragment (`/#/launch`). */
export function launchUrlFault(text: string): string | undefined {
  const [page = ''] = text.split('#', 1)
  return pageFault(absolute(page)) ?? (isEncoded(text) ? undefined : NOT_ENCODED)
}

/** What is wrong with the URL of a logo. */
export function logoUrlFault(text: string): string | undefined {
  return pageFault(absolute(text))
}

function pageFault(url: URL | string): string | undefined {
  if (typeof url === 'string') return url
  return /^https?:$/.test(url.protocol) ? undefined : 'expected an http or https address'
}

/** What is wrong with the address of a key set. */
export function jwksUrlFault(text: string): string | undefined {
  const url = absolute(text)
  if (typeof url === 'string') return url
  return url.protocol === 'https:' || isLoopbackHttp(url) ? undefined : 'expected https, or http on loopback'
}

const NOT_ENCODED = 'expected the characters of a URL, with all others percent-encoded'

/** A URL has no other characters (RFC 3986, 2), and the Location header cannot hold them all. */
function isEncoded(text: string): boolean {
  return /^[\w\-.~:/?#[\]@!$&'()*+,;=%]*$/.test(text)
}

function absolute(text: string): URL | string {
  const url = URL.parse(text)
  // Without the slashes a browser takes it for a path on the host that it comes from.
  if (url === null || /[\s\p{Cc}]/u.test(text) || /^https?:(?!\/\/)/i.test(text))
    return 'expected an absolute address'
  if (!isEncoded(text)) return NOT_ENCODED
  if (/^https?:$/.test(url.protocol) && !isPlainHost(url.hostname))
    return 'expected a plain host name or an IP address'
  if (text.includes('#')) return 'expected an address without fragment'
  return url.username === '' && url.password === '' ? url : 'expected an address without user and password'
}

function isLoopbackHttp(url: URL): boolean {
  return url.protocol === 'http:' && isLoopbackHost(url.hostname)
}

// RFC 8252, 7.1: a domain name in reverse, so that it has a dot; never a scheme that browsers run or open themselves.
function isPrivateUse(url: URL): boolean {
  return /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:$/.test(url.protocol)
}
