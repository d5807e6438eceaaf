import type { FastifyReply } from 'fastify'

export interface PagePolicy {
  /** Origins besides our own that a form of this page may end at. `POST /portal/launch` redirects to the client. */
  readonly formTargets?: readonly string[]
  /** Images of others that this page shows, such as the logo of an app: these and no other. */
  readonly images?: readonly string[]
  /** Origins that may frame this page. */
  readonly frameAncestors?: readonly string[]
}

/** Strict policy for a page: own styles, scripts and images, no inline code. */
export function pagePolicy({ formTargets = [], images = [], frameAncestors = [] }: PagePolicy = {}): string {
  return [
    "default-src 'none'",
    "style-src 'self'",
    "script-src 'self'",
    `img-src ${["'self'", 'data:', ...images.map(imageOf)].join(' ')}`,
    "connect-src 'self'",
    `form-action ${["'self'", ...formTargets.map(originOf)].join(' ')}`,
    `frame-ancestors ${frameAncestors.length > 0 ? frameAncestors.map(originOf).join(' ') : "'none'"}`,
    "base-uri 'none'",
  ].join('; ')
}

const DATA_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"

/**
 * A source of a policy. A custom scheme (`com.example.app:/callback`) has no origin: the scheme is the source. What is
 * not an address is left out, so that nothing can be smuggled into the header.
 */
function originOf(address: string): string {
  if (!URL.canParse(address)) return ''
  const { origin, protocol } = new URL(address)
  return origin === 'null' ? protocol : origin
}

// The whole address, so that nothing else can be fetched from there. A policy knows no query, and ends at `;` and `,`.
function imageOf(address: string): string {
  if (!URL.canParse(address)) return ''
  const { protocol, origin, pathname } = new URL(address)
  return /^https?:$/.test(protocol)
    ? `${origin}${pathname.replaceAll(';', '%3B').replaceAll(',', '%2C')}`
    : ''
}

/**
 * Headers of every response, set before its handler may set others: a page has its own policy. `no-referrer`, because
 * addresses carry launch and code values; `no-store`, because most answers are about a patient.
 */
export function setSecurityHeaders(reply: FastifyReply, https: boolean): void {
  reply
    .header('content-security-policy', DATA_POLICY)
    .header('referrer-policy', 'no-referrer')
    .header('x-content-type-options', 'nosniff')
    .header('cache-control', 'no-store')
  if (https) reply.header('strict-transport-security', 'max-age=31536000')
}
