import type { Static } from '@sinclair/typebox'
import type { EncounterWords } from '../../web/index.ts'
import { askApi } from '../api/ask.ts'
import { conditionsRow } from '../api/conditions.ts'
import { meRow } from '../api/me.ts'
import { medicationsRow } from '../api/medications.ts'
import { patientRow } from '../api/patient.ts'
import { vitalsRow } from '../api/vitals.ts'
import type { Failure, Result } from '../failure.ts'
import type { Visit } from '../records/visit.ts'
import { BLOOD_PRESSURE } from './blood-pressure.ts'
import { loadEncounter } from './encounter.ts'

/** What the page shows, each part by itself: one that is missing does not take the others along. */
export interface DemoRecord {
  readonly me: Result<Static<typeof meRow.body>>
  readonly patient: Result<Static<typeof patientRow.body>>
  readonly conditions: Result<Static<typeof conditionsRow.body>>
  readonly medications: Result<Static<typeof medicationsRow.body>>
  readonly vitals: Result<Static<typeof vitalsRow.body>>
  /** Undefined where the launch has none. */
  readonly encounter: Result<EncounterWords> | undefined
}

/** Through the same functions as the session API. */
export async function loadRecord(visit: Visit): Promise<DemoRecord> {
  const [me, patient, conditions, medications, vitals, encounter] = await Promise.all([
    askApi(meRow, visit),
    askApi(patientRow, visit),
    askApi(conditionsRow, visit),
    askApi(medicationsRow, visit),
    askApi(vitalsRow, visit, { code: BLOOD_PRESSURE }),
    loadEncounter(visit),
  ])
  return { me, patient, conditions, medications, vitals, encounter }
}

/** The failure that leaves nothing to show, if there is one. */
export function findWholeFailure(record: DemoRecord): Failure | undefined {
  const failures = Object.values(record).flatMap(part => (!part || part.ok ? [] : [part.failure as Failure]))
  const over = failures.find(({ kind }) => kind === 'session-over' || kind === 'token-refused')
  if (over) return over
  const { patient } = record
  return !patient.ok && patient.failure.kind !== 'missing-scope' ? patient.failure : undefined
}
