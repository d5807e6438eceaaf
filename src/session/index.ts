/**
 * The session API and the demo app (SESSION-1, API-1): launches from an EHR, keeps the encrypted tokens in a server-side
 * session, renews them silently, and serves data of the launched patient at `/api/**`. No token reaches the browser. The
 * FHIR server, not this module, decides who may see a record.
 */
export { createOpenApiDocument } from './api/openapi.ts'
export { type AppServerOptions, createAppServer } from './app-server.ts'
