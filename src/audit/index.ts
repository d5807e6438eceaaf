/**
 * The audit trail (AUDIT-1): who did what, for which patient, and with which outcome. Records are stored as compact
 * rows before the response is sent, and converted to FHIR AuditEvents when they are read. They contain no secret
 * and no patient name. The servers record their actions; this module stores, finds and converts the records, and
 * decides nothing.
 *
 * How a record of a FHIR request reaches the disk: `auditor.ts` has it made (`audit-record/finished.ts`) and adds it to
 * `store.trail` (`store/trail.ts`); `store/sqlite/trail.ts` or `store/postgres.ts` writes it.
 */

export {
  type AuditKind,
  type AuditRecord,
  type FinishedRequest,
  OUTCOME_UNKNOWN,
  type SentContent,
} from '../audit-record/index.ts'
export {
  type Auditor,
  type AuditorOptions,
  AuditUnavailable,
  createAuditor,
  createFhirAudit,
  type FhirAudit,
  type FhirAuditOptions,
  noAudit,
  type StoreAuditor,
} from './auditor.ts'
export {
  type AuditLag,
  type FeedOptions,
  measureAuditLag,
  type RefusedRecord,
  type SendRecords,
  startFeed,
} from './feed/feed.ts'
export { createFhirSender, createSyslogSender } from './feed/senders.ts'
export { auditRefusal, isAboutAudit } from './fhir/serve-events.ts'
export { type AuditEventOptions, formatRepeats, toAuditEvent } from './fhir/to-audit-event.ts'
export { doLater, type Later } from './later.ts'
export { createEventIds, type EventIds, openEventIds } from './trail/event-ids.ts'
export {
  countRecords,
  findFirstOAuthEvents,
  findLastTokens,
  findOwnEvents,
  findPage,
  findRecords,
  type KeptRecord,
  listParties,
  type Parties,
  type TrailPosition,
} from './trail/find.ts'
export {
  type Delivery,
  reportUnknownOutcomes,
  startReportingUnknown,
  UNKNOWN_AFTER_MS,
} from './trail/intents.ts'
export { adoptSeals, sealTrail, startSealing, startSweepingAudit, sweepAudit } from './trail/seal.ts'
export type { RecordFilter } from './trail/terms.ts'
export { type Verification, verifyTrail } from './trail/verify.ts'
