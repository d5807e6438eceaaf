export interface User {
  readonly id: string
  readonly username: string
  readonly displayName: string
  /** The id of the clinician's Practitioner; `Patient/<id>` or `RelatedPerson/<id>` for a patient user. */
  readonly fhirUserId: string
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
export function findOwnPatient({ fhirUserId }: Pick<User, 'fhirUserId'>): string | undefined {
  return fhirUserId.startsWith('Patient/') ? fhirUserId.slice('Patient/'.length) : undefined
}

/** Whether a user is a patient or a related person, who opens only their own records (PATIENTS-1). */
export function isPatientUser({ fhirUserId }: Pick<User, 'fhirUserId'>): boolean {
  return /^(?:Patient|RelatedPerson)\//.test(fhirUserId)
}
