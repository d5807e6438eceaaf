/**
 * Endpoints for programs. An API is a list of endpoints, each with its path, the schemas of its query, body and result, and its
 * words. The routes, the checks of what was sent and the OpenAPI document follow from the list. It knows no tokens, no
 * sessions and no operations: each API adds who may call an endpoint, and what the endpoint does.
 */

export { type Api, type Endpoint, StreamedText } from './endpoint.ts'
export { findFaults, type JsonSchema } from './faults.ts'
export { checkMembers, type InvalidMembers, readMembers } from './members.ts'
export { createOpenApi } from './openapi.ts'
export { addEndpoints } from './routes.ts'
export { formatTime, Members, NONE, OneOf, PageOf, Time } from './schemas.ts'
