import type { Client } from './client.ts'

/**
 * Whether a client registered this redirect URI. Compared as text, in full (RFC 9700, 2.1), but for the port of a native
 * app's loopback URI, which its operating system chooses (RFC 8252, 7.3). That is for IP literals only: `localhost` may
 * lead elsewhere (RFC 8252, 8.3). And only for public clients with PKCE: a local process that takes another port gets a
 * code that it cannot redeem.
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
