/**
 * CI sets `TEST_THOROUGH`: more random cases, PostgreSQL also for tests above the store, axe on every screen, and
 * the files that take long (scripts/slow-tests.ts) with all of their cases.
 */
export const IS_THOROUGH = process.env.TEST_THOROUGH !== undefined

/** `npm run test:package -- --short` leaves out what CI runs with the clone, and what the image shows: all starts with PostgreSQL. */
export const IS_SHORT = process.env.TEST_SHORT !== undefined

/** How many random cases a property is tried with. */
export function countRuns(thorough: number): number {
  return IS_THOROUGH ? thorough : Math.ceil(thorough / 8)
}
