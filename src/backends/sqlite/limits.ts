/** What one search may ask of the embedded server beyond `src/fhir/limits.ts` (docs/limits.md). */

/** Values of all parameters of a type. SQLite takes 32,766, and expressions 1,000 deep. */
export const QUERY_VALUES = 400
/** As many values one of `:contains` or `:above` counts for: no index helps to find it. */
export const SCAN_WEIGHT = 10
export const SORT_KEYS = 8
/** `_include` and `_revinclude` parameters. */
export const INCLUDES = 200

/** Old versions and deletions that a page of a history looks into and leaves out, where a granular scope limits it. */
export const VERSIONS_JUDGED = 5_000
