/**
 * The embedded FHIR R4 server: resources in one SQLite file (`fhir.db`), served over HTTP, searched, versioned and
 * validated. It asks its Guard about every request and keeps to the reach that the guard gives, inside its queries;
 * it knows nothing of tokens and scopes itself.
 */
export { openRepository } from './repository/open-repository.ts'
export type { LoadReport, RefusedResource, Repository, RepositoryOptions } from './repository/repository.ts'
export { type FhirServerOptions, fhirServer } from './server.ts'
