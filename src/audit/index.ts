/**
 * The audit trail (contract 5.8): what was decided and done, by whom and for which patient, kept as compact rows before
 * the response goes out, and shown as FHIR AuditEvents when it is read. It decides nothing itself, and holds neither a
 * secret nor a patient's name. The servers record what they do; this room keeps, finds and renders it.
 */
export { type Auditor, AuditUnavailable, noAudit } from './auditor.ts'
export type { CountingAuditor } from './count-anonymous.ts'
export { type AuditorOptions, createAuditor } from './create-auditor.ts'
export { type Delivery, OUTCOME_UNKNOWN, UNKNOWN_AFTER_MS } from './delivery.ts'
export { auditRefusal, isAboutAudit } from './fhir/answer.ts'
export { type FhirAudit, type FhirAuditOptions, fhirAudit } from './fhir/fhir-audit.ts'
export type { Finished } from './fhir/finished.ts'
export { auditEventOf, moreText } from './fhir/resource.ts'
export { doLater, type Later } from './later.ts'
export type { AuditKind, AuditRecord } from './record.ts'
export { countRecords, findRecords, type KeptRecord, type Place, type RecordFilter } from './trail/find.ts'
export { reportUnknownOutcomes } from './trail/intents.ts'
export { type AuditSweeping, startReportingUnknown, startSweepingAudit, sweepAudit } from './trail/sweep.ts'
