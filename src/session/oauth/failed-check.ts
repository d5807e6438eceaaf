/** Claims and parameters whose expected value is configured and may be logged. A nonce or a state is not. */
const CONFIGURED: ReadonlySet<unknown> = new Set(['aud', 'azp', 'iss'])

/**
 * Tells which check of `openid-client` a response did not pass, and what was expected. The texts are the library's own
 * and name a claim or a field; nothing of the response's content is taken over but an HTTP status and an address.
 */
export function describeFailedCheck(error: unknown): string {
  const failed = findCheck(error)
  if (!failed) return error instanceof Error ? error.name : 'unknown'
  const { message, cause } = failed
  if (cause instanceof Response) return `${message}: ${whereOf(cause)} answered ${cause.status}`
  const expected = expectedOf(cause, message)
  return expected === undefined ? message : `${message}, expected ${expected}`
}

/** The innermost error of the library: those around it say less, those within it (of a JSON parser) quote the response. */
function findCheck(error: unknown): Error | undefined {
  if (!(error instanceof Error)) return undefined
  const inner = findCheck(error.cause)
  if (inner) return inner
  return 'code' in error && typeof error.code === 'string' && error.code.startsWith('OAUTH_')
    ? error
    : undefined
}

function expectedOf(cause: unknown, message: string): string | undefined {
  if (typeof cause !== 'object' || cause === null || !('expected' in cause)) return undefined
  const { expected } = cause
  const claim = 'claim' in cause ? cause.claim : /"(\w+)"/.exec(message)?.[1]
  if (claim === 'nonce') return 'the nonce of the launch'
  if (CONFIGURED.has(claim) && typeof expected === 'string') return expected
  return claim === 'alg' && Array.isArray(expected) ? expected.join(' or ') : undefined
}

function whereOf({ url }: Response): string {
  const { origin, pathname } = URL.parse(url) ?? { origin: 'the server', pathname: '' }
  return `${origin}${pathname}`
}
