import type { Logger } from '../../web/index.ts'

/** A hospital's own certificate authorities are not in Node's list. */
const UNTRUSTED: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/**
 * Logs once why another server is unreachable, and when it recovers: callers continue without it, and an untrusted
 * certificate would go unnoticed. Logs only origins, because URLs carry secrets.
 */
export function createReportingFetch(
  fetch: typeof globalThis.fetch,
  logger: Logger,
): typeof globalThis.fetch {
  const told = new Map<string, string>()
  return async (input, init) => {
    const { origin } = new URL(input instanceof Request ? input.url : input)
    try {
      const response = await fetch(input, init)
      if (told.delete(origin)) logger.warn({ origin }, 'Server is reachable again')
      return response
    } catch (error) {
      const reason = reasonOf(error)
      // The caller aborted the request.
      if (reason !== 'AbortError' && told.get(origin) !== reason) {
        told.set(origin, reason)
        const hint = UNTRUSTED.has(reason) ? ': add its certificate authority to NODE_EXTRA_CA_CERTS' : ''
        logger.warn({ origin, reason }, `Cannot reach server${hint}`)
      }
      throw error
    }
  }
}

function reasonOf(error: unknown): string {
  let reason = 'unknown'
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    reason = 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.name
  return reason
}
