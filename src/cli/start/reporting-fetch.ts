import { describeError, findCode } from '../../core/index.ts'
import { type Logger, startClientSpan } from '../../web/http/index.ts'

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
  const reported = new Map<string, string>()
  return async (input, init) => {
    const { origin } = new URL(input instanceof Request ? input.url : input)
    const span = startClientSpan(init?.method ?? 'GET', origin)
    try {
      const response = await fetch(input, span ? addHeaders(input, init, span.headers) : init)
      span?.end(response.status)
      if (reported.delete(origin)) logger.warn({ origin }, 'Server is reachable again')
      return response
    } catch (error) {
      span?.end()
      const reason = findReason(error)
      // The caller aborted the request.
      if (reason !== 'AbortError' && reported.get(origin) !== reason) {
        reported.set(origin, reason)
        logger.warn({ origin, reason }, `Cannot reach server${findHint(reason)}`)
      }
      throw error
    }
  }
}

function addHeaders(
  input: string | URL | Request,
  init: RequestInit | undefined,
  added: Readonly<Record<string, string>>,
): RequestInit {
  const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
  for (const [name, value] of Object.entries(added)) headers.set(name, value)
  return { ...init, headers }
}

function findHint(reason: string): string {
  return UNTRUSTED.has(reason) ? ': add its certificate authority to NODE_EXTRA_CA_CERTS' : ''
}

/** The message of an error, the code of its first cause, and the remedy for an untrusted certificate. */
export function describeReason(error: unknown): string {
  const reason = findReason(error)
  const message = describeError(error).replace(/\.$/, '')
  return `${message}${message.includes(reason) ? '' : ` (${reason})`}${findHint(reason)}`
}

function findReason(error: unknown): string {
  let reason = 'unknown'
  for (let cause = error; cause instanceof Error; cause = cause.cause) reason = findCode(cause) ?? cause.name
  return reason
}
