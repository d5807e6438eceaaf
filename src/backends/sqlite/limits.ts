/** Limits of one search on the embedded server, beyond `src/fhir/limits.ts` (docs/limits.md). */

/** Values of all parameters of a type. SQLite accepts 32,766 values, and expressions 1,000 deep. */
export const QUERY_VALUES = 400
/** A value of `:contains` or `:above` counts as this many: no index helps to find it. */
export const SCAN_WEIGHT = 10
/** A parameter counts as this many values beside its own: each is a subquery of its own. */
export const PARAMETER_WEIGHT = 3
export const SORT_KEYS = 8
/** `_include` and `_revinclude` parameters. */
export const INCLUDES = 200

/** Old versions and deletions that one page of a history may check and leave out, for a granular scope. */
export const VERSIONS_CHECKED = 5_000

/** Index rows that a search reads before other requests are served. */
export const STEP_ROWS = 500
/** The work of such a step, in rows, if each row is compared with many values: about 10 ms. */
export const STEP_WORK = 5_000
/** The rows that a parameter with which a row is compared counts as, and each of its values. */
export const ROWS_OF_PARAMETER = 1.5
export const ROWS_OF_VALUE = 0.3
/** Index rows that the search of a conditional write may read: the file is locked meanwhile. */
export const CONDITION_ROWS = 20_000

/** Versions that a step of a bulk export reads. */
export const EXPORT_STEP_ROWS = 2_000
/** Characters after which such a step sends what it has read: parsed resources of a larger one outlive the young generation. */
export const EXPORT_CHARACTERS = 64 * 1024
