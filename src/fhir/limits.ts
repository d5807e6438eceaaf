/**
 * Limits of one request to the FHIR API. With them no request keeps the event loop busy for more than 100 ms, or takes
 * more than 2 s of CPU time or 64 MB beyond its body (docs/limits.md). A request that exceeds a limit gets a 4xx that names it.
 */

/** Units of work of one request, of about a microsecond of CPU time each (`work.ts`). */
export const WORK_UNITS = 2_000_000
/** Units of work of one request that is checked without a pause, by the library. */
export const WORK_UNITS_AT_ONCE = 500_000
/** Milliseconds for a request before other requests are processed. */
export const TURN_MS = 25

/** Bytes of a request body. */
export const BODY_BYTES = 5 * 1024 * 1024
/** Contents of Binaries that a process receives as streams at the same time. */
export const CONTENTS_AT_ONCE = 8
/** Contents of Binaries that a process receives as streams from one grant at the same time. */
export const CONTENTS_OF_GRANT = 2
/** Levels of objects and arrays in JSON. A valid resource has about 200 at most: see `validate`. */
export const JSON_DEPTH = 500
/** Values in JSON: members of objects and items of arrays. */
export const JSON_VALUES = 200_000

/** Characters of a query, of the form of a `_search`, and of a condition such as `If-None-Exist`. */
export const SEARCH_CHARACTERS = 64 * 1024
/** Parameters of a search and their values, together. */
export const SEARCH_VALUES = 1_000
/** Steps to parse a search: one for each value and each type of a chain or of a search in all types. */
export const SEARCH_STEPS = 2_500
/** Links of a chain; each may lead to many types. */
export const CHAIN_LINKS = 3
/** Resources of a page. */
export const PAGE_RESOURCES = 1_000
/** Characters of the resources in a page of a search or history. */
export const PAGE_CHARACTERS = 2 * 1024 * 1024
/** Rules of all includes of a search; `*` stands for many. */
export const INCLUDE_RULES = 1_000
/** Digits of a fraction of a second. */
export const FRACTION_DIGITS = 100
/** Characters of a narrative. */
export const NARRATIVE_CHARACTERS = 1024 * 1024
/** Characters of a stored text that are searched by prefix or substring, and characters of the searched values. */
export const SEARCHED_CHARACTERS = 1_000
/** Characters of a value of `:below` and `:above`. */
export const HIERARCHY_CHARACTERS = 300
/** Included resources of a page, and their characters. */
export const INCLUDED_RESOURCES = 5_000
export const INCLUDED_CHARACTERS = 4 * 1024 * 1024
/** Rounds of `_include:iterate` and `_revinclude:iterate`. */
export const INCLUDE_ROUNDS = 8

/** Operations of a JSON Patch or a FHIRPath Patch. */
export const PATCH_OPERATIONS = 1_000
/** Characters of JSON that the `copy` operations of a patch copy: each copy of an array into itself doubles it. */
export const PATCH_COPIED_CHARACTERS = 1024 * 1024
/** Levels of a value in a patch. No valid resource is nested more deeply (see `validate`). */
export const PATCH_DEPTH = 100
/** Characters of a path in a patch. */
export const PATCH_PATH_CHARACTERS = 1_000
/** Items of lists that the operations of a patch shift, and digits of decimals that they compare, together. */
export const PATCH_SHIFTS = 5_000_000
/** Elements that all operations of a FHIRPath Patch visit together. */
export const PATCH_ELEMENTS = 200_000

/** Entries of a batch. */
export const BATCH_ENTRIES = 2_000
/** Entries of a transaction, which cannot be interrupted. */
export const TRANSACTION_ENTRIES = 1_000
/** Base64 characters of the JSON Patches in a batch or transaction. */
export const BUNDLE_PATCH_CHARACTERS = 1024 * 1024
/** Bytes of the response to a batch or transaction. */
export const BUNDLE_RESPONSE_BYTES = 4 * 1024 * 1024
/** Search values that one write, or all writes of a transaction, add to the index. */
export const INDEX_ROWS = 10_000
/** Characters of a search value that count as one; a longer value counts as several. */
export const INDEX_ROW_CHARACTERS = 128

/** Characters of an access token. */
export const TOKEN_CHARACTERS = 12 * 1024
/** Granular scopes of an access token. */
export const GRANULAR_SCOPES = 150

/** Observations of each code in the response to `$lastn`. */
export const LAST_N_SHOWN = 1_000
/** Observations that `$lastn` selects from, and their characters. */
export const LAST_N_OBSERVATIONS = 5_000
export const LAST_N_CHARACTERS = 4 * 1024 * 1024

/** DocumentReferences that are read to find the patient of a Binary. */
export const DOCUMENTS_OF_BINARY = 20
/** Binaries that one DocumentReference of a limited caller names. */
export const BINARIES_OF_DOCUMENT = 20
