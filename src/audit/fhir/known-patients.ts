import type { Reach, Roster, RosterOf } from '../../consent/index.ts'
import type { AnyProblem } from '../../fhir/index.ts'
import type { KeptRecord } from '../trail/find.ts'

/** Knows who is on the panels of a reach, of the patients of the records that it was shown. */
export interface KnownPatients<P> extends Roster {
  /** Undefined when all is known; otherwise why it cannot be told. */
  learn(records: readonly KeptRecord[]): Promise<P | undefined>
}

/** Asks about each patient once: the same few come again and again. */
export function knownPatients<P extends AnyProblem>(reach: Reach, rosterOf: RosterOf<P>): KnownPatients<P> {
  const panels = reach === 'everything' ? [] : reach.flatMap(({ panel }) => panel ?? [])
  const asked = new Set<string>()
  const rosters: Roster[] = []
  return {
    holds: (panel, patient) => rosters.some(it => it.holds(panel, patient)),
    async learn(records) {
      const unknown = new Set(
        records.flatMap(({ patients, patient_id: id }) =>
          patients === null && id !== null && !asked.has(id) ? [id] : [],
        ),
      )
      if (panels.length === 0 || unknown.size === 0) return undefined
      const roster = await rosterOf(panels, unknown)
      if (!('holds' in roster)) return roster
      for (const id of unknown) asked.add(id)
      rosters.push(roster)
      return undefined
    },
  }
}
