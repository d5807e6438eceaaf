import type { AnyProblem } from '../../fhir/index.ts'
import type { AccessFilter, FindPanelMembership, PanelMembership } from '../../smart/index.ts'
import type { KeptRecord } from '../trail/find.ts'

/** Knows who is on the panels of a reach, of the patients of the records that it was shown. */
export interface KnownPatients<P> extends PanelMembership {
  /** Undefined when all is known; otherwise why it cannot be told. */
  learn(records: readonly KeptRecord[]): Promise<P | undefined>
}

/** Asks about each patient once: the same few come again and again. */
export function createPatientCache<P extends AnyProblem>(
  filter: AccessFilter,
  rosterOf: FindPanelMembership<P>,
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
      const membership = await rosterOf(panels, unknown)
      if (!('includes' in membership)) return membership
      for (const id of unknown) asked.add(id)
      rosters.push(membership)
      return undefined
    },
  }
}
