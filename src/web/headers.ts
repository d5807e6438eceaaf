import type { FastifyReply } from 'fastify'

export interface PagePolicy {
  /** URLs besides our own that a form of this page may lead to. `POST /portal/launch` redirects to the client. */
  readonly formTargets?: readonly string[]
  /** Images of others that this page shows, such as the logo of an app: these and no other. */
  readonly images?: readonly string[]
}

const NO_FRAMES = "frame-ancestors 'none'"

/** Strict policy for a page: own styles, scripts and images, no inline code. */
export function createPagePolicy({ formTargets = [], images = [] }: PagePolicy = {}): string {
  return [
    // First: of two directives with one name the first counts, and those below name URLs that clients registered.
    NO_FRAMES,
    "default-src 'none'",
    "style-src 'self'",
    "script-src 'self'",
    listSources("img-src 'self' data:", images, 'path'),
    "connect-src 'self'",
    listSources("form-action 'self'", formTargets, 'origin'),
    "base-uri 'none'",
  ].join('; ')
}

const DATA_POLICY = `${NO_FRAMES}; default-src 'none'; base-uri 'none'`

function listSources(directive: string, urls: readonly string[], part: 'origin' | 'path'): string {
  return [directive, ...new Set(urls.flatMap(url => findSourceExpression(url, part) ?? []))].join(' ')
}

/**
 * The source expression of a URL, up to its origin or its path; undefined where there is none. The only place where a
 * URL enters a policy: `;` and `,` are legal in the host of a URL and would end the directive or the policy, and `*` is
 * a wildcard.
 */
function findSourceExpression(text: string, part: 'origin' | 'path'): string | undefined {
  const url = URL.parse(text)
  if (url === null) return undefined
  // A private-use scheme (`com.example.app:/callback`) has no origin: the scheme is the source.
  if (/^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:$/.test(url.protocol)) return url.protocol
  if (!/^https?:$/.test(url.protocol) || !isPlainHost(url.hostname)) return undefined
  return part === 'origin'
    ? url.origin
    : `${url.origin}${url.pathname.replace(/[^\w.~/%-]/g, character => encodeURIComponent(character))}`
}

/** Whether a host is a plain host name or an IP literal, as `URL.hostname` writes it. */
export function isPlainHost(hostname: string): boolean {
  return /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])$/.test(hostname)
}

/**
 * Headers of every response, set before its handler may set others: a page has its own policies. `no-referrer`, because
 * addresses carry launch and code values; `no-store`, because most answers are about a patient.
 */
export function setSecurityHeaders(reply: FastifyReply, https: boolean): void {
  reply
    .header('content-security-policy', DATA_POLICY)
    // For browsers that do not know frame-ancestors.
    .header('x-frame-options', 'DENY')
    .header('referrer-policy', 'no-referrer')
    .header('x-content-type-options', 'nosniff')
    .header('cache-control', 'no-store')
  if (https) reply.header('strict-transport-security', 'max-age=31536000')
}
