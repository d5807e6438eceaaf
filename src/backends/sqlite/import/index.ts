/**
 * The import: reads FHIR resources from files (NDJSON, Bundles, single resources, gzip of all, folders) and hands them
 * to the repository in bounded transactions. Files are streamed, so memory does not grow with them. It neither prints
 * nor decides what is valid: the repository does that, and what it refuses is told with file and line, never with
 * content.
 */
export { type FoundFiles, findFiles } from './find-files.ts'
export { type ImportProgress, importFiles } from './import-files.ts'
export type { ImportReport, Place, Reason, Unreadable } from './report.ts'
export { BatchRefused, sendAll } from './send-all.ts'
