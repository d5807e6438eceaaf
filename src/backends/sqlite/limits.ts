/** Limits of one search on the embedded server, beyond `src/fhir/limits.ts` (docs/limits.md). */

/** Values of all parameters of a type. SQLite accepts 32,766 values, and expressions 1,000 deep. */
export const QUERY_VALUES = 400
/** A value of `:contains` or `:above` counts as this many: no index helps to find it. */
export const SCAN_WEIGHT = 10
export const SORT_KEYS = 8
/** `_include` and `_revinclude` parameters. */
export const INCLUDES = 200

/** Old versions and deletions that one page of a history may check and leave out, for a granular scope. */
export const VERSIONS_CHECKED = 5_000

/** Steps of up to 500 index rows that a search may take. Other requests are served between them. */
export const SEARCH_STEPS = 20_000
/** Steps that the search of a conditional write may take: the file is locked meanwhile. */
export const CONDITION_STEPS = 100
