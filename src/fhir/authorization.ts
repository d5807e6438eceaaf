/**
 * The Authorization header of a request, from Node's `rawHeaders`. Node itself keeps the first of several and drops
 * the others; here they are one list, which is no bearer token, so that nobody can hide one behind another.
 */
export function authorizationOf(rawHeaders: readonly string[]): string | undefined {
  const values = rawHeaders.filter(
    (_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'authorization',
  )
  return values.length === 0 ? undefined : values.join(', ')
}
