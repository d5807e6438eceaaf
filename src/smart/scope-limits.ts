/** The most scopes that one request may ask for, and that one client may be registered for. */
export const MOST_SCOPES = 100

/** The longest list of scopes, in characters. An access token that holds one this long still fits into a header. */
export const LONGEST_SCOPE_LIST = 8_000

/** The most search parameters that a granular scope may have. One with more is outside the grammar: it permits nothing. */
export const MOST_SCOPE_PARAMETERS = 6

/**
 * The most search parameters that those granular scopes have together which have several. Scopes with one parameter are
 * one condition, however many there are of them; each of these is a condition of its own for every resource.
 */
export const MOST_COMBINED_PARAMETERS = 50

/** Which limit a space-separated list of scopes exceeds, as the end of a sentence about it; undefined if none. */
export function findScopeListFault(list: string): string | undefined {
  if (list.length > LONGEST_SCOPE_LIST) return `is longer than ${LONGEST_SCOPE_LIST} characters`
  const texts = list.split(' ').filter(text => text !== '')
  if (texts.length > MOST_SCOPES) return `has more than ${MOST_SCOPES} scopes`
  if (texts.some(text => countParameters(text) > MOST_SCOPE_PARAMETERS))
    return `has a scope with more than ${MOST_SCOPE_PARAMETERS} search parameters`
  return hasTooManyCombined(texts.map(countParameters))
    ? `has more than ${MOST_COMBINED_PARAMETERS} search parameters in scopes that combine several`
    : undefined
}

/** Whether scopes with so many search parameters each combine too many. */
export function hasTooManyCombined(counts: readonly number[]): boolean {
  return counts.filter(it => it > 1).reduce((sum, it) => sum + it, 0) > MOST_COMBINED_PARAMETERS
}

// Only granular scopes have an ampersand.
function countParameters(text: string): number {
  return text.split('&').length
}
