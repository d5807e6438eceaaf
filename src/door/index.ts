/**
 * The one door below the FHIR base, which the embedded server and the gateway are both entered by: what an address means
 * is told by `parseInteraction` alone, the guard judges the token before a byte of the body is read, each interaction is
 * decided, and what came of it is in the audit trail before the response goes out. How an admitted call is performed and
 * sent is the matter of the server behind; the door knows nothing of tokens, scopes and data.
 */
export type { Audited, Behind, PerformedChange } from './behind.ts'
export type { Asked, Call } from './call.ts'
export { failedEntry } from './failed-entry.ts'
export { type DoorOptions, openDoor } from './open-door.ts'
export { sendBody } from './send-body.ts'
export { sendContent } from './send-content.ts'
export { openTurns } from './turns.ts'
