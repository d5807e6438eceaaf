import { type Selectable, sql } from 'kysely'
import type { Schema, Store } from '../../store/index.ts'
import { hashPassword } from './password.ts'

export interface Clinician {
  readonly id: string
  readonly username: string
  readonly displayName: string
  /** The id of the clinician's Practitioner; `Patient/<id>` or `RelatedPerson/<id>` for a patient user. */
  readonly fhirUserId: string
}

export function toClinician(
  row: Pick<Selectable<Schema['clinician']>, 'id' | 'username' | 'display_name' | 'fhir_user_id'>,
): Clinician {
  return { id: row.id, username: row.username, displayName: row.display_name, fhirUserId: row.fhir_user_id }
}

/** Finds a clinician who is not disabled. */
export async function findClinician({ db }: Store, username: string): Promise<Clinician | undefined> {
  const row = await db
    .selectFrom('clinician')
    .select(['id', 'username', 'display_name', 'fhir_user_id'])
    .where('username', '=', username)
    .where('disabled', '=', false)
    .executeTakeFirst()
  return row && toClinician(row)
}

/** The absolute URL of the user's own resource. */
export function buildFhirUser(fhirUserId: string, fhirBaseUrl: string): string {
  return `${fhirBaseUrl}/${formatFhirUser(fhirUserId)}`
}

/** The reference to the user's own resource. The column has it, or the bare id of a Practitioner. */
export function formatFhirUser(fhirUserId: string): string {
  return /^(?:Practitioner|Patient|RelatedPerson)\//.test(fhirUserId)
    ? fhirUserId
    : `Practitioner/${fhirUserId}`
}

/** The patient that a user is; undefined for a clinician or a related person. */
export function findOwnPatient({ fhirUserId }: Pick<Clinician, 'fhirUserId'>): string | undefined {
  return fhirUserId.startsWith('Patient/') ? fhirUserId.slice('Patient/'.length) : undefined
}

/** Whether a user is a patient or a related person, who opens only their own records (PATIENTS-1). */
export function isPatientUser({ fhirUserId }: Pick<Clinician, 'fhirUserId'>): boolean {
  return /^(?:Patient|RelatedPerson)\//.test(fhirUserId)
}

/** The test clinician of the first start. */
export const TEST_CLINICIAN = { username: 'clinician', displayName: 'Dr. Robin Ahmadi' } as const

/**
 * Creates the test clinician if there is no clinician yet. Safe if several instances start at once, because the username
 * is unique. Returns whether this start created it.
 */
export async function seedClinician(
  { db }: Store,
  password: string,
  practitionerId: string,
): Promise<boolean> {
  const some = await db.selectFrom('clinician').select('id').limit(1).executeTakeFirst()
  if (some) return false
  const passwordHash = await hashPassword(password)
  const result = await db
    .insertInto('clinician')
    .columns(['username', 'password_hash', 'display_name', 'fhir_user_id'])
    .expression(
      db
        .selectNoFrom([
          sql<string>`cast(${TEST_CLINICIAN.username} as text)`.as('username'),
          sql<string>`cast(${passwordHash} as text)`.as('password_hash'),
          sql<string>`cast(${TEST_CLINICIAN.displayName} as text)`.as('display_name'),
          sql<string>`cast(${practitionerId} as text)`.as('fhir_user_id'),
        ])
        .where(({ not, exists, selectFrom }) => not(exists(selectFrom('clinician').select('id')))),
    )
    .onConflict(conflict => conflict.doNothing())
    .executeTakeFirst()
  return result.numInsertedOrUpdatedRows === 1n
}
