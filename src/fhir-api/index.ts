/**
 * The one door below the FHIR base, which the embedded server and the gateway are both entered by: what an address means
 * is told by `parseInteraction` alone, the guard judges the token before a byte of the body is read, each interaction is
 * decided, and what came of it is in the audit trail before the response goes out. How an admitted call is performed and
 * sent is the matter of the server behind; the door knows nothing of tokens, scopes and data.
 */
export type { Audited, Behind, PerformedChange } from './behind.ts'
export { describeFailedEntry } from './bundle/failed-entry.ts'
export { createTurns } from './bundle/turns.ts'
export type { Call, FhirRequest } from './call.ts'
export { createFhirApi, type FhirApiOptions } from './http/create-fhir-api.ts'
export { sendBody } from './http/send-body.ts'
export { sendContent } from './http/send-content.ts'
