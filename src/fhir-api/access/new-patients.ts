import { isRecord, parseReference, type Resource } from '../../fhir/index.ts'
import type { PanelMembership } from '../../smart/index.ts'

/**
 * Panel membership as it is after a transaction that creates these Patients: their content alone says which
 * organization manages them.
 */
export function includeNewPatients(
  membership: PanelMembership,
  newPatients: ReadonlyMap<string, Resource>,
  baseUrl: string,
): PanelMembership {
  if (newPatients.size === 0) return membership
  return {
    includes(panel, patient) {
      const organization = findOrganization(newPatients.get(patient), baseUrl)
      return (
        (organization !== undefined && panel.organizations.includes(organization)) ||
        membership.includes(panel, patient)
      )
    },
  }
}

function findOrganization(patient: Resource | undefined, baseUrl: string): string | undefined {
  const managing = patient?.managingOrganization
  const text = isRecord(managing) ? managing.reference : undefined
  const reference = typeof text === 'string' ? parseReference(text, baseUrl) : undefined
  return reference?.type === 'Organization' ? reference.id : undefined
}
