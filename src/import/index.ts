/**
 * The import: reads FHIR resources from files (NDJSON, Bundles, single resources, gzip, folders) and writes them to the
 * embedded server's repository in bounded transactions. From there, `sendAll` sends them to any FHIR server. Lines
 * are streamed, so that memory does not grow with them; a Bundle is parsed as a whole, up to a limit. The repository validates; the
 * report names the file and line or entry of refused resources, never their content.
 */
export { type FoundFiles, findFiles } from './find-files.ts'
export { type ImportProgress, importFiles } from './import-files.ts'
export { MAX_LINE_BYTES } from './limits.ts'
export type { ImportReport, Reason, Unreadable } from './loader.ts'
export { splitLines } from './read-lines.ts'
export { findReason, type SentReport, sendAll } from './send-all.ts'
