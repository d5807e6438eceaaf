/** Limits of the MCP endpoint (docs/limits.md). */

/** Bytes of a message. */
export const MESSAGE_BYTES = 256 * 1024

/** Time of a tool call. */
export const CALL_MS = 30_000

/** Characters of a result: about four are a token, and hosts cut results at about 25,000 tokens. */
export const RESULT_CHARACTERS = 80_000

/** Characters of the summary of a patient: 1,500 tokens. */
export const SUMMARY_CHARACTERS = 6_000

/** Characters of one text of a record in a row. They are fewer where all rows would otherwise be too long. */
export const CELL_CHARACTERS = 150

/** Characters of a fault. It may quote what was sent. */
export const FAULT_CHARACTERS = 4_000

/** Characters of the reason for which a person rejected a proposal, in the list of all. */
export const OUTCOME_CHARACTERS = 500

/** Characters of one text in a resource, such as the data of an attachment. */
export const TEXT_CHARACTERS = 8_000

/** Notes about what was left out, and of the FHIR server. */
export const MAX_NOTES = 20

/** Characters of a note of the FHIR server. */
export const NOTE_CHARACTERS = 500

/** Rows of a page. */
export const MAX_ROWS = 100

/** Grants whose calls are counted at once. */
export const COUNTED_GRANTS = 10_000
