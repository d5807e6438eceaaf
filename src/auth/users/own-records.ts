import { DAY_MS, isFailure, isRecord } from '../../core/index.ts'
import { parseReference, type Resource } from '../../fhir/index.ts'
import type { BaseContext } from '../base/context.ts'
import {
  createUserLookup,
  type LookupContext,
  type ReaderCaller,
  type Unavailable,
} from '../base/fhir-reader.ts'
import { type AuthUser, findOwnPatient, isPatientUser } from '../base/user.ts'
import { findRelation } from './relation.ts'

/** A patient whose record a user may open, and the user's own resource for that patient. */
export interface OwnRecord {
  readonly patientId: string
  /** `Patient/<id>` of the user, or the `RelatedPerson/<id>` that names the patient. */
  readonly fhirUserId: string
  /** What the patient is to the user: `You`, `Your child`. Undefined if nothing says it. */
  readonly relation?: string | undefined
}

type RecordsContext = LookupContext & Pick<BaseContext, 'store' | 'clock'>

/** The records of a patient user: their own, and those of the patients that their RelatedPersons name now (PATIENTS-4). */
export async function findOwnRecords(
  context: RecordsContext,
  user: Pick<AuthUser, 'id' | 'fhirUserId'>,
  caller: ReaderCaller = { purpose: 'own-records' },
): Promise<readonly OwnRecord[] | Unavailable> {
  if (!isPatientUser(user)) return []
  const patientId = findOwnPatient(user)
  const own = patientId === undefined ? [] : [{ patientId, fhirUserId: user.fhirUserId, relation: 'You' }]
  const dependants = await findDependants(context, user.id, caller)
  if (isFailure(dependants)) return dependants
  const isFirst = ({ patientId }: OwnRecord, at: number, all: readonly OwnRecord[]) =>
    all.findIndex(other => other.patientId === patientId) === at
  return [...own, ...dependants].filter(isFirst)
}

async function findDependants(
  context: RecordsContext,
  userId: string,
  caller: ReaderCaller,
): Promise<readonly OwnRecord[] | Unavailable> {
  const rows = await context.store.db
    .selectFrom('account_related_person')
    .select('related_person_id as id')
    .where('clinician_id', '=', userId)
    .orderBy('related_person_id')
    .execute()
  if (rows.length === 0) return []
  const read = await createUserLookup(context, 'RelatedPerson', caller)
  const responses = await Promise.all(rows.map(({ id }) => read.resource('RelatedPerson', id)))
  const outage = responses.find(({ kind }) => kind === 'unavailable')
  if (outage?.kind === 'unavailable') return outage
  return responses.flatMap((response, at) => {
    if (response.kind !== 'found') return []
    const patientId = findNamedPatient(response.resource, context)
    const relation = findRelation(response.resource)
    return patientId === undefined
      ? []
      : [{ patientId, fhirUserId: `RelatedPerson/${rows[at]?.id}`, relation }]
  })
}

export async function listOwnPatients(
  context: RecordsContext,
  user: Pick<AuthUser, 'id' | 'fhirUserId'>,
): Promise<readonly string[]> {
  const records = await findOwnRecords(context, user)
  return isFailure(records) ? [] : records.map(({ patientId }) => patientId)
}

/** The patient that an active RelatedPerson names. */
export function findNamedPatient(
  resource: Resource,
  { settings, clock }: Pick<RecordsContext, 'settings' | 'clock'>,
): string | undefined {
  const { active, patient, period } = resource
  if (active === false || hasEnded(period, clock())) return undefined
  const reference = isRecord(patient) ? patient.reference : undefined
  const target = typeof reference === 'string' ? parseReference(reference, settings.fhirBaseUrl) : undefined
  return target?.type === 'Patient' ? target.id : undefined
}

function hasEnded(period: unknown, now: number): boolean {
  const end = isRecord(period) ? period.end : undefined
  if (end === undefined) return false
  // A date lasts until its end.
  const lasts = typeof end === 'string' && end.length === 'YYYY-MM-DD'.length ? DAY_MS : 0
  return !(Date.parse(String(end)) + lasts > now)
}
