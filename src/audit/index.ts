/**
 * The audit trail (AUDIT-1): what was decided and done, by whom and for which patient. Records are stored as compact rows
 * before the response is sent, and rendered as FHIR AuditEvents when they are read. They hold neither a secret nor a
 * patient's name. The servers record what they do; this module stores, finds and renders the records, and decides nothing.
 */
export { type Auditor, AuditUnavailable, noAudit } from './auditor.ts'
export type { CountingAuditor } from './count-anonymous.ts'
export { type AuditorOptions, createAuditor } from './create-auditor.ts'
export { type Delivery, OUTCOME_UNKNOWN, UNKNOWN_AFTER_MS } from './delivery.ts'
export { auditRefusal, isAboutAudit } from './fhir/audit-trail.ts'
export { type FhirAudit, type FhirAuditOptions, fhirAudit } from './fhir/fhir-audit.ts'
export type { Finished } from './fhir/finished.ts'
export { formatRepeats, toAuditEvent } from './fhir/to-audit-event.ts'
export { doLater, type Later } from './later.ts'
export type { AuditKind, AuditRecord } from './record.ts'
export { countRecords, findRecords, type KeptRecord, type Place, type RecordFilter } from './trail/find.ts'
export { reportUnknownOutcomes } from './trail/intents.ts'
export { type AuditSweeping, startReportingUnknown, startSweepingAudit, sweepAudit } from './trail/sweep.ts'
