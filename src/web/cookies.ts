import type { CookieSerializeOptions } from '@fastify/cookie'

export interface CookiePlan {
  readonly name: string
  readonly attributes: CookieSerializeOptions
}

/**
 * Name and attributes of a cookie of the server at `serverUrl`. Under https the name is bound to the host (`__Host-`). Lax, not
 * Strict: the browser comes back from another site when an authorization request or a callback arrives. `Priority` tells
 * a browser with too many cookies of a host (all its ports) which to throw away last.
 */
export function cookiePlan(serverUrl: string, name: string): CookiePlan {
  const secure = serverUrl.startsWith('https:')
  return {
    name: secure ? `__Host-${name}` : name,
    attributes: { httpOnly: true, sameSite: 'lax', secure, path: '/', priority: 'high' },
  }
}
