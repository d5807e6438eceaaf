const SECRETS: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\beyJ[\w-]+\.[\w-]*\.?[\w-]*/g, '[token]'],
  [/\b(bearer|basic)\s+[\w.~+/=-]+/gi, '$1 [secret]'],
  [/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@]+@/gi, '$1[secret]@'],
  [
    /\b(launch|code|state|nonce|token|access_token|refresh_token|id_token|id_token_hint|client_secret|client_assertion|code_verifier|password|secret)=[^&\s"']+/gi,
    '$1=[secret]',
  ],
  [/(?<![\w/.-])[\w-]{43,}(?![\w/-]|\.\w)/g, '[secret]'],
]

/** Removes from a message any text that looks like a token, a code or a password. A last defence: none should be there. */
export function scrub(text: string): string {
  return SECRETS.reduce((rest, [pattern, instead]) => rest.replace(pattern, instead), text)
}

/**
 * The message of an error without secrets. The messages of causes may quote a response or repeat the error's own, so
 * they are added only to the message of `fetch`, which alone explains nothing.
 */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return scrub(String(error))
  // A refused connection to a name with several addresses has one error for each and no message.
  if (error instanceof AggregateError && error.message === '') return describeError(error.errors[0])
  const hidesCause = error.message === 'fetch failed' && error.cause !== undefined
  return hidesCause ? `${error.message}: ${describeError(error.cause)}` : scrub(error.message)
}

/** The code of an error: `ENOENT`, `ERR_SQLITE_ERROR`, or an SQLSTATE. */
export function findCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

export function hasCode(error: unknown, code: string): boolean {
  return findCode(error) === code
}

export function isTimeout(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (/^(?:Timeout|Abort)Error$/.test(cause.name) || /TIMEOUT/.test(findCode(cause) ?? '')) return true
  return false
}
