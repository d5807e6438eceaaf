import { failApp } from '../../app-reasons/index.ts'
import { isFailure, isRecord } from '../../core/index.ts'
import { toPlain } from '../../fhir/index.ts'
import { describeEncounter, type EncounterDescription } from '../../web/person/index.ts'
import { findMissingScopes, queryApi } from '../api/endpoint.ts'
import { meEndpoint, patientEndpoint } from '../api/endpoints.ts'
import { conditionsEndpoint, medicationsEndpoint, vitalsEndpoint } from '../api/lists.ts'
import type { Result, SessionFailure } from '../failure.ts'
import { failUnexpected, isOfPatient, readFhir, type SessionRequest } from '../records/resources.ts'
import { loadAllergies } from './cards.ts'
import { BLOOD_PRESSURE, OLDER_BLOOD_PRESSURE } from './chart.ts'

const SCOPE = 'patient/Encounter.rs'

async function loadEncounter(
  sessionRequest: SessionRequest,
): Promise<Result<EncounterDescription> | undefined> {
  const { session } = sessionRequest
  if (session.encounterId === null) return undefined
  const missing = findMissingScopes([SCOPE], session.scope)
  if (missing.length > 0) return failApp('scope-not-granted', { scopes: missing.join(' ') })
  const read = await readFhir(sessionRequest, `${session.fhirBaseUrl}/Encounter/${session.encounterId}`)
  if (isFailure(read)) return read
  const found = toPlain(read)
  if (!isRecord(found) || found.resourceType !== 'Encounter' || found.id !== session.encounterId)
    return failUnexpected('it is not the encounter of the launch')
  if (!isOfPatient(found, session)) return failUnexpected('the encounter belongs to another patient')
  return describeEncounter({ ...found, resourceType: 'Encounter' })
}

/** Each part loads on its own, so that one failure does not hide the others. */
export async function loadRecord(sessionRequest: SessionRequest) {
  const [me, patient, conditions, medications, vitals, allergies, encounter] = await Promise.all([
    queryApi(meEndpoint, sessionRequest),
    queryApi(patientEndpoint, sessionRequest),
    queryApi(conditionsEndpoint, sessionRequest),
    queryApi(medicationsEndpoint, sessionRequest),
    loadBloodPressure(sessionRequest),
    loadAllergies(sessionRequest),
    loadEncounter(sessionRequest),
  ])
  return { me, patient, conditions, medications, vitals, allergies, encounter }
}

export type DemoRecord = Awaited<ReturnType<typeof loadRecord>>

async function loadBloodPressure(sessionRequest: SessionRequest) {
  const found = await queryApi(vitalsEndpoint, sessionRequest, { code: BLOOD_PRESSURE })
  return !isFailure(found) && found.total === 0
    ? queryApi(vitalsEndpoint, sessionRequest, { code: OLDER_BLOOD_PRESSURE })
    : found
}

/** Returns the failure that leaves nothing to show, if there is one. */
export function findWholeFailure(record: DemoRecord): SessionFailure | undefined {
  const failures = Object.values(record).flatMap(part => (isFailure(part) ? [part] : []))
  const over = failures.find(({ reason }) => reason === 'session-ended' || reason === 'token-refused')
  if (over) return over
  const { patient } = record
  return isFailure(patient) && patient.reason !== 'scope-not-granted' ? patient : undefined
}
