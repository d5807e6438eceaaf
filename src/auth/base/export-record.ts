import { type AuditRecord, fileUnder, listOnce } from '../../audit-record/index.ts'
import { PORTAL_CLIENT } from '../../smart/index.ts'
import { PURPOSES } from './purposes.ts'

/** The record of a command that copies the data of patients to files, which these patients see in their access log. */
export function describeExport(patients: readonly string[], operator: string, at: number): AuditRecord {
  return {
    at,
    server: 'fhir',
    kind: 'fhir',
    interaction: 'operation',
    allowed: true,
    status: 200,
    method: 'sallyport',
    request: 'data export',
    client: PORTAL_CLIENT,
    subject: PORTAL_CLIENT,
    reason: PURPOSES['data-export'].note,
    address: operator,
    ...fileUnder(listOnce(patients)),
  }
}
