/**
 * The Authorization header of a request, from Node's `rawHeaders`. Node itself keeps the first of several and drops
 * the others; here they are one list, which is no bearer token, so that nobody can hide one behind another.
 */
export function getAuthorizationHeader(rawHeaders: readonly string[]): string | undefined {
  let found: string | undefined
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    // Lengths are compared first: this is done for every header of every request.
    if (name.length === NAME.length && name.toLowerCase() === NAME)
      found = found === undefined ? rawHeaders[at + 1] : `${found}, ${rawHeaders[at + 1]}`
  }
  return found
}

const NAME = 'authorization'
