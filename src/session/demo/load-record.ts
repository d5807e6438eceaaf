import type { Static } from '@sinclair/typebox'
import { isRecord, plainOf } from '../../fhir/index.ts'
import { type EncounterWords, encounterWords } from '../../web/index.ts'
import { askApi } from '../api/ask.ts'
import { conditionsRow } from '../api/conditions.ts'
import { meRow } from '../api/me.ts'
import { medicationsRow } from '../api/medications.ts'
import { patientRow } from '../api/patient.ts'
import { findMissingScopes } from '../api/scopes.ts'
import { vitalsRow } from '../api/vitals.ts'
import { type Failure, fail, type Result, succeed } from '../failure.ts'
import { isOfPatient } from '../records/of-patient.ts'
import { failUnexpected, readFhir } from '../records/read-fhir.ts'
import type { Visit } from '../records/visit.ts'
import { BLOOD_PRESSURE } from './blood-pressure.ts'

const SCOPE = 'patient/Encounter.rs'

/** What the encounter of the launch is, where its app may know; undefined where there is none. */
async function loadEncounter(visit: Visit): Promise<Result<EncounterWords> | undefined> {
  const { session } = visit
  if (session.encounterId === null) return undefined
  const missing = findMissingScopes([SCOPE], session.scope)
  if (missing.length > 0) return fail({ kind: 'missing-scope', missing })
  const read = await readFhir(visit, `${session.fhirBaseUrl}/Encounter/${session.encounterId}`)
  if (!read.ok) return read
  const found = plainOf(read.value)
  if (!isRecord(found) || found.resourceType !== 'Encounter' || found.id !== session.encounterId)
    return failUnexpected('it is not the encounter of the launch')
  if (!isOfPatient(found, session)) return failUnexpected('the encounter is of another patient')
  return succeed(encounterWords({ ...found, resourceType: 'Encounter' }))
}

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
