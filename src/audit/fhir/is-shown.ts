import type { Resource } from '../../fhir/index.ts'
import { type AccessFilter, type PanelMembership, satisfies } from '../../smart/index.ts'
import type { KeptRecord } from '../trail/find.ts'

/**
 * Whether an event is reached. What reaches one patient, or a panel, does not reach an event that is about several: it
 * would tell of the others (contract 5.3).
 */
export function isShown(
  record: KeptRecord,
  resource: Resource,
  filter: AccessFilter,
  fhirBaseUrl: string,
  membership: PanelMembership,
): boolean {
  if (filter === 'everything') return true
  return filter.some(limit => {
    const isNarrow = limit.patient !== undefined || limit.panel !== undefined
    if (isNarrow && record.patients !== null) return false
    if (limit.patient !== undefined && record.patient_id !== limit.patient) return false
    return satisfies(resource, [limit], fhirBaseUrl, membership)
  })
}
