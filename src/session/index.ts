/**
 * The session API and the demo app (service.md 1.6, 4.4): launches from an EHR, keeps a server-side session with its
 * tokens sealed, renews them silently, and answers `/api/**` with data of the launched patient. No token reaches the
 * browser. It judges nobody's rights to a record: the FHIR server does, by the token.
 */
export { openApi } from './api/openapi.ts'
export { type AppServerOptions, appServer } from './app-server.ts'
