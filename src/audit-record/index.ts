/**
 * The audit record of a FHIR request: who did what to which resource, for which patients, by which scope, and with which
 * outcome. Pure, so that the interceptor as a library makes the same records as our own servers. It stores nothing.
 */

export type { SentContent } from './content-patients.ts'
export { countAnonymous, KINDS_COUNTED, SUBJECTS_COUNTED } from './count-anonymous.ts'
export { listOnce } from './find-patients.ts'
export {
  createPatientRecord,
  createRecords,
  createRecordsInTurns,
  type FinishedRequest,
} from './finished.ts'
export {
  type AuditKind,
  type AuditRecord,
  fileUnder,
  OTHERS,
  OUTCOME_UNKNOWN,
  readFiledPatients,
  type TargetType,
} from './record.ts'
export {
  isStatus,
  isWithin,
  OPTIONAL_MEMBERS,
  type SentRecord,
  toSentRecord,
} from './sent-record.ts'
