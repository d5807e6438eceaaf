/** Who is logged in (service.md 2.2). */
export interface Clinician {
  readonly id: string
  readonly username: string
  readonly displayName: string
  /** Id of the Practitioner. */
  readonly fhirUserId: string
}

/** The absolute address of the clinician's Practitioner. The column holds the bare id; `Practitioner/<id>` is read too. */
export function fhirUserOf(fhirUserId: string, fhirBaseUrl: string): string {
  const id = fhirUserId.replace(/^Practitioner\//, '')
  return `${fhirBaseUrl}/Practitioner/${id}`
}
