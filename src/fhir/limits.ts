/**
 * What one request may ask of a FHIR server, embedded or gateway. The numbers are chosen so that no request keeps the
 * event loop busy for more than 200 ms or takes more than 64 MB beyond its own body (docs/limits.md). Exceeding one is
 * answered with a 4xx that names the limit.
 */

/** Bytes of a request body. */
export const BODY_BYTES = 5 * 1024 * 1024
/** Levels of objects and arrays in JSON. A valid resource has about 200 at most: see `validate`. */
export const JSON_DEPTH = 500
/** Values in JSON: members of objects and items of arrays. */
export const JSON_VALUES = 200_000

/** Characters of a query, of the form of a `_search`, and of a condition such as `If-None-Exist`. */
export const SEARCH_CHARACTERS = 64 * 1024
/** Parameters of a search and their values, together. */
export const SEARCH_VALUES = 1_000
/** Steps of reading a search: one for each value and each type that a chain or a search of all types leads to. */
export const SEARCH_STEPS = 2_500
/** Links of a chain: each may widen to many types. */
export const CHAIN_LINKS = 3
/** Resources that a page is asked for at most. */
export const PAGE_RESOURCES = 1_000
/** Characters of the resources that a page of a search or history shows. */
export const PAGE_CHARACTERS = 2 * 1024 * 1024
/** Rules that the includes of a search come to: `*` is many. */
export const INCLUDE_RULES = 1_000
/** Characters of a narrative. */
export const NARRATIVE_CHARACTERS = 1024 * 1024
/** Characters of a text in which searches by its beginning or a part of it look, and characters of their values. */
export const SEARCHED_CHARACTERS = 1_000
/** Characters of a value of `:below` and `:above`. */
export const HIERARCHY_CHARACTERS = 300
/** Resources that a page of a search brings along, and their characters. */
export const INCLUDED_RESOURCES = 5_000
export const INCLUDED_CHARACTERS = 4 * 1024 * 1024
/** How often `_include:iterate` and `_revinclude:iterate` go on from what they brought along. */
export const INCLUDE_ROUNDS = 8

/** Operations of a JSON Patch or a FHIRPath Patch. */
export const PATCH_OPERATIONS = 1_000
/** Characters of JSON that the `copy` operations of a patch copy: each copy of an array into itself doubles it. */
export const PATCH_COPIED_CHARACTERS = 1024 * 1024
/** Levels of a value in a patch. No valid resource is nested more deeply (see `validate`). */
export const PATCH_DEPTH = 100
/** Characters of a path in a patch. */
export const PATCH_PATH_CHARACTERS = 1_000
/** Elements that all operations of a FHIRPath Patch together may look at. */
export const PATCH_ELEMENTS = 200_000

/** Entries of a batch. */
export const BATCH_ENTRIES = 2_000
/** Entries of a transaction, which nothing interrupts. */
export const TRANSACTION_ENTRIES = 1_000
/** Characters of the JSON Patches in a batch or transaction, which come in base64. */
export const BUNDLE_PATCH_CHARACTERS = 1024 * 1024
/** Bytes that the response to a batch or transaction may have. */
export const BUNDLE_RESPONSE_BYTES = 4 * 1024 * 1024
/** Milliseconds of processor time for the entries of a batch. */
export const BUNDLE_WORK_MS = 2_000
/** Milliseconds of processor time for a batch before other requests get their turn. */
export const TURN_MS = 25
/** Milliseconds of processor time for all searches and reads of a transaction, which nothing interrupts. */
export const TRANSACTION_READ_MS = 50
/** Search values that one write, or all writes of a transaction together, may add to the index. */
export const INDEX_ROWS = 10_000
/** Characters of a search value that count as one; a longer value counts as several. */
export const INDEX_ROW_CHARACTERS = 128

/** Characters of an access token. */
export const TOKEN_CHARACTERS = 12 * 1024
/** Granular scopes, which restrict by search parameters, of an access token. */
export const GRANULAR_SCOPES = 150

/** Observations of each code that `$lastn` shows. */
export const LAST_N_SHOWN = 1_000
/** Observations that `$lastn` chooses from. */
export const LAST_N_OBSERVATIONS = 5_000
export const LAST_N_CHARACTERS = 4 * 1024 * 1024

/** DocumentReferences that are looked at to find out whose a Binary is. */
export const DOCUMENTS_OF_BINARY = 20
/** Binaries that one DocumentReference names, of a caller who may not read every Binary. */
export const BINARIES_OF_DOCUMENT = 20
