import type { AnyProblem, Resource } from '../../fhir/index.ts'
import {
  type AccessFilter,
  type FindPanelMembership,
  type PanelMembership,
  satisfies,
} from '../../smart/index.ts'
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

interface KnownPatients<P> extends PanelMembership {
  /** Undefined if every patient is known; otherwise the problem. */
  learn(records: readonly KeptRecord[]): Promise<P | undefined>
}

/** Looks up each patient once. */
export function createPatientCache<P extends AnyProblem>(
  filter: AccessFilter,
  panelMembers: FindPanelMembership<P>,
): KnownPatients<P> {
  const panels = filter === 'everything' ? [] : filter.flatMap(({ panel }) => panel ?? [])
  const asked = new Set<string>()
  const rosters: PanelMembership[] = []
  return {
    includes: (panel, patient) => rosters.some(it => it.includes(panel, patient)),
    async learn(records) {
      const unknown = new Set(
        records.flatMap(({ patients, patient_id: id }) =>
          patients === null && id !== null && !asked.has(id) ? [id] : [],
        ),
      )
      if (panels.length === 0 || unknown.size === 0) return undefined
      const membership = await panelMembers(panels, unknown)
      if (!('includes' in membership)) return membership
      for (const id of unknown) asked.add(id)
      rosters.push(membership)
      return undefined
    },
  }
}
