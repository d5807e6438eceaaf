import { isLoopbackHost } from '../../../config/index.ts'
import { isFailure } from '../../../core/index.ts'
import { isPlainHost } from '../../../web/http/index.ts'
import { type Fault, makeFault } from '../../base/fault.ts'
import type { Client } from './client.ts'

/** Finds out why a redirect URI is not allowed (RFC 6749, 3.1.2; RFC 8252, 7). */
export function findRedirectUriFault(text: string): Fault | undefined {
  const url = parseAbsoluteUrl(text)
  if (isFailure(url)) return url
  if (text.includes('*')) return makeFault('redirect-uri-with-wildcard')
  return url.protocol === 'https:' || isLoopbackHttp(url) || isPrivateUse(url)
    ? undefined
    : makeFault('redirect-uri-scheme')
}

/** Finds out why a launch URL is not allowed. It may have a fragment, for apps with a hash router (`/#/launch`). */
export function findLaunchUrlFault(text: string): Fault | undefined {
  const [page = ''] = text.split('#', 1)
  return findPageUrlFault(parseAbsoluteUrl(page)) ?? (isEncoded(text) ? undefined : NOT_ENCODED)
}

export function findLogoUrlFault(text: string): Fault | undefined {
  return findPageUrlFault(parseAbsoluteUrl(text))
}

function findPageUrlFault(url: URL | Fault): Fault | undefined {
  if (isFailure(url)) return url
  return /^https?:$/.test(url.protocol) ? undefined : makeFault('url-not-of-a-page')
}

/** A page that users open from ours. */
export function findWebPageFault(text: string): Fault | undefined {
  const url = parseAbsoluteUrl(text.split('#', 1)[0] ?? '')
  if (isFailure(url)) return url
  if (!isEncoded(text)) return NOT_ENCODED
  return url.protocol === 'https:' ? undefined : makeFault('url-not-https')
}

export function findJwksUrlFault(text: string): Fault | undefined {
  const url = parseAbsoluteUrl(text)
  if (isFailure(url)) return url
  return url.protocol === 'https:' || isLoopbackHttp(url) ? undefined : makeFault('keys-url-not-https')
}

const NOT_ENCODED = makeFault('url-not-encoded')

/** A URL has no other characters (RFC 3986, 2), and a Location header cannot contain all of them. */
function isEncoded(text: string): boolean {
  return /^[\w\-.~:/?#[\]@!$&'()*+,;=%]*$/.test(text)
}

function parseAbsoluteUrl(text: string): URL | Fault {
  const url = URL.parse(text)
  // Without the slashes a browser resolves it against the current host.
  if (url === null || /[\s\p{Cc}]/u.test(text) || /^https?:(?!\/\/)/i.test(text))
    return makeFault('url-not-absolute')
  if (!isEncoded(text)) return NOT_ENCODED
  if (/^https?:$/.test(url.protocol) && !isPlainHost(url.hostname)) return makeFault('url-host-not-plain')
  if (text.includes('#')) return makeFault('url-with-fragment')
  return url.username === '' && url.password === '' ? url : makeFault('url-with-credentials')
}

export function isLoopbackHttp(url: URL): boolean {
  return url.protocol === 'http:' && isLoopbackHost(url.hostname)
}

// RFC 8252, 7.1: a reversed domain name, so it has a dot. This excludes schemes that browsers handle themselves.
function isPrivateUse(url: URL): boolean {
  return /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:$/.test(url.protocol)
}

/**
 * Whether a client registered this redirect URI. Exact string comparison (RFC 9700, 2.1), except for the port of a native
 * app's loopback URI, which the operating system chooses (RFC 8252, 7.3). The exception is for IP literals, because
 * `localhost` may resolve to another address (RFC 8252, 8.3), and for public clients with PKCE, so that another local
 * process cannot redeem the code. A temporary client registered an origin.
 */
export function isRegisteredRedirectUri(client: Client, uri: string): boolean {
  if (client.redirectUris.includes(uri)) return true
  if (client.expiresAt !== undefined) return isOfOrigin(client, uri)
  const isNative = client.authMethod === 'none' && client.pkceRequired
  const asked = isNative ? removeLoopbackPort(uri) : undefined
  return asked !== undefined && client.redirectUris.some(one => removeLoopbackPort(one) === asked)
}

function isOfOrigin({ redirectUris }: Client, uri: string): boolean {
  const url = parseAbsoluteUrl(uri)
  return !isFailure(url) && redirectUris.some(one => URL.parse(one)?.origin === url.origin)
}

function removeLoopbackPort(uri: string): string | undefined {
  const [, host, port = '80', rest = ''] =
    /^(http:\/\/(?:127\.0\.0\.1|\[::1\]))(?::(\d{1,5}))?([/?][^#]*)?$/.exec(uri) ?? []
  return host !== undefined && Number(port) > 0 && Number(port) < 65_536 ? `${host}${rest}` : undefined
}
