import {
  type AuditRecord,
  createPatientRecord,
  createRecords,
  type FinishedRequest,
} from '../../audit-record/index.ts'
import type { Store } from '../../store/index.ts'
import type { Auditor } from '../auditor.ts'
import { withUnknownOutcome } from '../trail/intents.ts'
import { type AuditTrail, openAuditTrail } from './audit-trail.ts'

export interface FhirAudit extends AuditTrail, Pick<Auditor, 'prepare' | 'deliver' | 'redeliver'> {
  /** Await before sending the response. Rejects if the record cannot be stored: then the response must not be sent. */
  record(finished: FinishedRequest): Promise<void>
  /** Records the patients of a response that was too long to be read before it was sent. */
  recordPatients(finished: FinishedRequest, patients: readonly string[]): Promise<void>
  /** For a server that stores the records with the change and delivers them. */
  createRecords(finished: FinishedRequest): readonly AuditRecord[]
  /** The record of a change whose outcome is not yet known. */
  createBegunRecords(begun: FinishedRequest): readonly AuditRecord[]
  /** Before and after a change at another server: see `Auditor`. */
  intend(begun: FinishedRequest): Promise<string | undefined>
  complete(intent: string | undefined, finished: FinishedRequest): Promise<void>
}

export interface FhirAuditOptions {
  readonly auditor: Auditor
  readonly store: Store
  readonly fhirBaseUrl: string
}

export function fhirAudit({ auditor, store, fhirBaseUrl }: FhirAuditOptions): FhirAudit {
  // That of a Bundle is filed under the patients of its entries.
  const begunRecord = (begun: FinishedRequest) => createRecords(begun, fhirBaseUrl)[0]
  return {
    ...openAuditTrail(store, fhirBaseUrl),
    prepare: auditor.prepare,
    deliver: auditor.deliver,
    redeliver: auditor.redeliver,
    record: finished => auditor.record(...createRecords(finished, fhirBaseUrl)),
    recordPatients: (finished, patients) =>
      auditor.record(createPatientRecord(finished, patients, fhirBaseUrl)),
    createRecords: finished => (auditor.keeps ? createRecords(finished, fhirBaseUrl) : []),
    createBegunRecords: begun => (auditor.keeps ? [withUnknownOutcome(begunRecord(begun))] : []),
    intend: begun => auditor.intend(begunRecord(begun)),
    complete: (intent, finished) => auditor.complete(intent, ...createRecords(finished, fhirBaseUrl)),
  }
}
