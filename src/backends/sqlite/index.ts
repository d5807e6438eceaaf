/**
 * The embedded FHIR R4 server: resources in one SQLite file (`fhir.db`), served over HTTP, searched, versioned and
 * validated. It asks its Guard about every request and keeps to the reach that the guard gives, inside its queries;
 * it knows nothing of tokens and scopes itself.
 */
export type { LoadReport, RefusedResource } from './repository/load.ts'
export { openRepository, type Repository, type RepositoryOptions } from './repository/repository.ts'
export { type FhirServerOptions, fhirServer } from './server.ts'
