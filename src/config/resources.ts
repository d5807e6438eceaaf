import type { BaseSettings } from './setting-row.ts'

/** The endpoint of assistants, as its tokens name it (RFC 8707). */
export function getMcpUrl({ fhirBaseUrl }: Pick<BaseSettings, 'fhirBaseUrl'>): string {
  return `${fhirBaseUrl}/mcp`
}

/** What a client of the endpoint asks for that does not know better: enough for a summary of the patient. */
export const MCP_SCOPES: readonly string[] = [
  'launch/patient',
  'patient/Patient.rs',
  'patient/AllergyIntolerance.rs',
  'patient/Condition.rs',
  'patient/MedicationRequest.rs',
  'patient/Observation.rs',
  'patient/Encounter.rs',
]

/** Where the FHIR server describes a resource (RFC 9728, 3.1): the path of the resource comes after the well-known one. */
export function getResourceMetadataUrl(resource: string): string {
  const { origin, pathname } = new URL(resource)
  return `${origin}${RESOURCE_METADATA_PATH}${pathname.replace(/\/$/, '')}`
}

/** Where a client looks that knows only the server. */
export const RESOURCE_METADATA_PATH = '/.well-known/oauth-protected-resource'
