import type { Store } from '../../store/index.ts'
import type { Auditor } from '../auditor.ts'
import type { AuditRecord } from '../record.ts'
import { withUnknownOutcome } from '../trail/intents.ts'
import { type AuditTrail, openAuditTrail } from './audit-trail.ts'
import { type Finished, recordsOf } from './finished.ts'
import { recordOf } from './to-record.ts'

/** What a FHIR server, embedded or in front of another one, needs of the audit trail. */
export interface FhirAudit extends AuditTrail, Pick<Auditor, 'prepare' | 'deliver' | 'redeliver'> {
  /** Before the response goes out. Rejects when the record cannot be kept: then it must not go out. */
  record(finished: Finished): Promise<void>
  /** The records of a change, for a server that keeps them together with it and delivers them. */
  recordsOf(finished: Finished): readonly AuditRecord[]
  /** The record of a change that is begun, as long as its outcome is not known. */
  begun(begun: Finished): readonly AuditRecord[]
  /** Before a change is sent to another server, and after it: see `Auditor`. */
  intend(begun: Finished): Promise<string | undefined>
  complete(intent: string | undefined, finished: Finished): Promise<void>
}

export interface FhirAuditOptions {
  readonly auditor: Auditor
  /** Where AuditEvents are read from. */
  readonly store: Store
  readonly fhirBaseUrl: string
}

export function fhirAudit({ auditor, store, fhirBaseUrl }: FhirAuditOptions): FhirAudit {
  const begunRecord = (begun: Finished) => recordOf({ ...begun, grant: begun.admitted?.grant }, fhirBaseUrl)
  return {
    ...openAuditTrail(store, fhirBaseUrl),
    prepare: auditor.prepare,
    deliver: auditor.deliver,
    redeliver: auditor.redeliver,
    record: finished => auditor.record(...recordsOf(finished, fhirBaseUrl)),
    recordsOf: finished => (auditor.keeps ? recordsOf(finished, fhirBaseUrl) : []),
    begun: begun => (auditor.keeps ? [withUnknownOutcome(begunRecord(begun))] : []),
    intend: begun => auditor.intend(begunRecord(begun)),
    complete: (intent, finished) => auditor.complete(intent, ...recordsOf(finished, fhirBaseUrl)),
  }
}
