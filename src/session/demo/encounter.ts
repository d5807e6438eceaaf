import { isRecord, plainOf } from '../../fhir/index.ts'
import { type EncounterWords, encounterWords } from '../../web/index.ts'
import { findMissingScopes } from '../api/scopes.ts'
import { fail, type Result, succeed } from '../failure.ts'
import { isOfPatient } from '../records/of-patient.ts'
import { failUnexpected, readFhir } from '../records/read-fhir.ts'
import type { Visit } from '../records/visit.ts'

const SCOPE = 'patient/Encounter.rs'

/** What the encounter of the launch is, where its app may know; undefined where there is none. */
export async function loadEncounter(visit: Visit): Promise<Result<EncounterWords> | undefined> {
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
