/**
 * The export: writes FHIR resources to files (NDJSON by type, plain or gzip, with a manifest), from the embedded server's
 * database or from another FHIR server as a client of Bulk Data Access. The rows of the database are those of `$export`, as
 * they are at one moment. Files get their names when all are complete. Memory does not grow with the number of resources.
 */
export { exportFrom, type ServiceAuthorization } from './bulk-client.ts'
export { type ExportProgress, exportStore, type NotExported } from './export-store.ts'
export { ExportFiles } from './files.ts'
