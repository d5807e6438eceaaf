import type { Selectable } from 'kysely'
import type { Schema } from '../../store/index.ts'

/** Who is logged in (service.md 2.2). */
export interface Clinician {
  readonly id: string
  readonly username: string
  readonly displayName: string
  /** Id of the Practitioner. */
  readonly fhirUserId: string
}

/** Who stands in a row of the table. */
export function clinicianOf(
  row: Pick<Selectable<Schema['clinician']>, 'id' | 'username' | 'display_name' | 'fhir_user_id'>,
): Clinician {
  return { id: row.id, username: row.username, displayName: row.display_name, fhirUserId: row.fhir_user_id }
}

/** The absolute address of the clinician's Practitioner. The column holds the bare id; `Practitioner/<id>` is read too. */
export function fhirUserOf(fhirUserId: string, fhirBaseUrl: string): string {
  const id = fhirUserId.replace(/^Practitioner\//, '')
  return `${fhirBaseUrl}/Practitioner/${id}`
}
