/**
 * The embedded FHIR R4 server: resources in one SQLite file (`fhir.db`), with their versions and search index. It is a
 * backend of the FHIR API: it puts the access filter of a request into its queries, and knows nothing of tokens and
 * scopes.
 */
export { openLocalExport } from './export-rows.ts'
export {
  type LoadReport,
  openRepository,
  parseContent,
  type RefusedResource,
  type Repository,
  type RepositoryOptions,
} from './repository/repository.ts'
export { findConditionMatch } from './search/search.ts'
export { type FhirServerOptions, fhirServer } from './server.ts'
