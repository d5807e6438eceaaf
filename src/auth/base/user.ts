export interface AuthUser {
  readonly id: string
  readonly username: string
  readonly displayName: string
  /**
   * The id of the clinician's Practitioner; `Patient/<id>` or `RelatedPerson/<id>` for a patient user; empty for an account that
   * opens no records.
   */
  readonly fhirUserId: string
}

/**
 * Whether an account opens records: whoever has no FHIR user is nobody to apps and the FHIR server, and gets no token (LOGIN-19).
 * The account is for `/account` and, as an administrator or auditor, `/admin`.
 */
export function opensRecords({ fhirUserId }: Pick<AuthUser, 'fhirUserId'>): boolean {
  return fhirUserId !== ''
}

export const OPENS_NO_RECORDS = 'This account opens no patient records.'

/** The absolute URL of the user's own resource, for tokens. */
export function buildFhirUser(fhirUserId: string, fhirBaseUrl: string): string {
  if (!opensRecords({ fhirUserId })) throw new Error(OPENS_NO_RECORDS)
  return `${fhirBaseUrl}/${formatFhirUser(fhirUserId)}`
}

/** The reference to the user's own resource. The column has it, or the bare id of a Practitioner. Empty without one. */
export function formatFhirUser(fhirUserId: string): string {
  return fhirUserId === '' || /^(?:Practitioner|Patient|RelatedPerson)\//.test(fhirUserId)
    ? fhirUserId
    : `Practitioner/${fhirUserId}`
}

/** The patient that a user is; undefined for a clinician or a related person. */
export function findOwnPatient({ fhirUserId }: Pick<AuthUser, 'fhirUserId'>): string | undefined {
  return fhirUserId.startsWith('Patient/') ? fhirUserId.slice('Patient/'.length) : undefined
}

/** Whether a user is a patient or a related person, who opens only their own records (PATIENTS-1). */
export function isPatientUser({ fhirUserId }: Pick<AuthUser, 'fhirUserId'>): boolean {
  return /^(?:Patient|RelatedPerson)\//.test(fhirUserId)
}
