/** The most scopes that one request may ask for, and that one client may be registered for. */
export const MOST_SCOPES = 100

/** The longest list of scopes, in characters. An access token that holds one this long still fits into a header. */
export const LONGEST_SCOPE_LIST = 8_000

/** The most search parameters that a granular scope may have. One with more is outside the grammar: it permits nothing. */
export const MOST_SCOPE_PARAMETERS = 6

/** Which limit a space-separated list of scopes exceeds, as the end of a sentence about it; undefined if none. */
export function findScopeListFault(list: string): string | undefined {
  if (list.length > LONGEST_SCOPE_LIST) return `is longer than ${LONGEST_SCOPE_LIST} characters`
  const texts = list.split(' ').filter(text => text !== '')
  if (texts.length > MOST_SCOPES) return `has more than ${MOST_SCOPES} scopes`
  return texts.some(hasTooManyParameters)
    ? `has a scope with more than ${MOST_SCOPE_PARAMETERS} search parameters`
    : undefined
}

function hasTooManyParameters(text: string): boolean {
  const [, query = ''] = text.split('?', 2)
  return query.split('&').length > MOST_SCOPE_PARAMETERS
}
