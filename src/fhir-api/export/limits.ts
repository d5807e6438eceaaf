/** Limits of bulk exports (docs/limits.md). */

/** `_typeFilter` parameters of an export. */
export const EXPORT_FILTERS = 50
/** Patients that the parameter `patient` of an export may name. */
export const EXPORT_PATIENTS = 1_000
/** Exports of a client that have not ended or expired. */
export const EXPORT_JOBS = 100
/** Files that a process sends to one client at the same time. */
export const EXPORT_DOWNLOADS = 2
/** Milliseconds that a further download of the client waits for its turn. */
export const EXPORT_TURN_MS = 30_000
/** Downloads of a client that wait for their turn. */
export const EXPORT_DOWNLOADS_WAITING = 100
/** Milliseconds that a request for the status works on the list of files. */
export const EXPORT_STATUS_MS = 500
/** Rows that are checked at once to count those that a limited caller may see. */
export const EXPORT_ROWS_CHECKED = 2_000
/** Milliseconds after which a request for the status that has not ended is given up, and another one may begin. */
export const EXPORT_STATUS_LEASE_MS = 60_000
/** Seconds that a client is told to wait before it asks for the status again. */
export const EXPORT_POLL_SECONDS = 1
/** Milliseconds after which a file that is being sent notices the end of its export. */
export const EXPORT_CHECK_MS = 5_000
/** Characters of a line of a file of the upstream's own export. */
export const EXPORT_LINE_CHARACTERS = 32 * 1024 * 1024
/** Patients whose lines are counted at once, for files that are organized by patient. */
export const EXPORT_PATIENTS_COUNTED = 20
