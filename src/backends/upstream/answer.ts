/** The response to an interaction. */
export type { FhirResponse as Answer } from '../../fhir-api/index.ts'
