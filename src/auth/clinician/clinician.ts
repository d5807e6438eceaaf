import type { Selectable } from 'kysely'
import type { Schema } from '../../store/index.ts'

export interface Clinician {
  readonly id: string
  readonly username: string
  readonly displayName: string
  /** The id of the clinician's Practitioner. */
  readonly fhirUserId: string
}

export function toClinician(
  row: Pick<Selectable<Schema['clinician']>, 'id' | 'username' | 'display_name' | 'fhir_user_id'>,
): Clinician {
  return { id: row.id, username: row.username, displayName: row.display_name, fhirUserId: row.fhir_user_id }
}

/** The absolute URL of the clinician's Practitioner. The column has the bare id or `Practitioner/<id>`. */
export function buildFhirUser(fhirUserId: string, fhirBaseUrl: string): string {
  const id = fhirUserId.replace(/^Practitioner\//, '')
  return `${fhirBaseUrl}/Practitioner/${id}`
}
