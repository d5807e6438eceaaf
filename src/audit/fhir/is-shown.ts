import type { Resource } from '../../fhir/index.ts'
import { type AccessFilter, type PanelMembership, satisfies } from '../../smart/index.ts'
import type { KeptRecord } from '../trail/find.ts'

/**
 * Whether the caller may see an event. A caller limited to one patient or a panel sees no event about several patients:
 * it would reveal the others (AUDIT-5).
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
