import type { Client } from './client.ts'

/**
 * Whether a client registered this redirect URI. Exact string comparison (RFC 9700, 2.1), except for the port of a native
 * app's loopback URI, which the operating system chooses (RFC 8252, 7.3). The exception is for IP literals, because
 * `localhost` may resolve to another address (RFC 8252, 8.3), and for public clients with PKCE, so that another local
 * process cannot redeem the code.
 */
export function isRegisteredRedirectUri(client: Client, uri: string): boolean {
  if (client.redirectUris.includes(uri)) return true
  const isNative = client.authMethod === 'none' && client.pkceRequired
  const asked = isNative ? removeLoopbackPort(uri) : undefined
  return asked !== undefined && client.redirectUris.some(one => removeLoopbackPort(one) === asked)
}

function removeLoopbackPort(uri: string): string | undefined {
  const [, host, port = '80', rest = ''] =
    /^(http:\/\/(?:127\.0\.0\.1|\[::1\]))(?::(\d{1,5}))?([/?][^#]*)?$/.exec(uri) ?? []
  return host !== undefined && Number(port) > 0 && Number(port) < 65_536 ? `${host}${rest}` : undefined
}
