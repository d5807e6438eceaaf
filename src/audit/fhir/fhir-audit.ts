import type { Store } from '../../store/index.ts'
import type { Auditor } from '../auditor.ts'
import { type AuditTrail, auditTrail } from './answer.ts'
import { type Finished, recordsOf } from './finished.ts'

/** What a FHIR server, embedded or in front of another one, needs of the audit trail. */
export interface FhirAudit extends AuditTrail, Pick<Auditor, 'prepare'> {
  /** Before the response goes out. Rejects when the record cannot be kept: then it must not go out. */
  record(finished: Finished): Promise<void>
}

export interface FhirAuditOptions {
  readonly auditor: Auditor
  /** Where AuditEvents are read from. */
  readonly store: Store
  readonly fhirBaseUrl: string
}

export function fhirAudit({ auditor, store, fhirBaseUrl }: FhirAuditOptions): FhirAudit {
  return {
    ...auditTrail(store, fhirBaseUrl),
    prepare: () => auditor.prepare(),
    record: finished => auditor.record(...recordsOf(finished, fhirBaseUrl)),
  }
}
