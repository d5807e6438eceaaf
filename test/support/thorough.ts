/**
 * CI sets `TEST_THOROUGH`: more random cases, PostgreSQL also for tests above the store, axe on every screen, and the cost of
 * all requests, also in front of another server. A run without it covers every rule in less than three minutes on two cores.
 */
export const IS_THOROUGH = process.env.TEST_THOROUGH !== undefined

/** How many random cases a property is tried with. */
export function countRuns(thorough: number): number {
  return IS_THOROUGH ? thorough : Math.ceil(thorough / 8)
}
