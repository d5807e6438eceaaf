import type { Logger } from '../../web/index.ts'

/** Authorities of a hospital's own are not in Node's list. */
const UNTRUSTED: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/**
 * A `fetch` that says in the log why another server cannot be reached, once until it answers again: callers go on without
 * it, and without this line nobody learns of a certificate that is not trusted. Only origins: addresses carry secrets.
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
      if (told.delete(origin)) logger.warn({ origin }, 'Server is reached again')
      return response
    } catch (error) {
      const reason = reasonOf(error)
      // An AbortError is the caller's doing.
      if (reason !== 'AbortError' && told.get(origin) !== reason) {
        told.set(origin, reason)
        const hint = UNTRUSTED.has(reason) ? ': name its authority in NODE_EXTRA_CA_CERTS' : ''
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
