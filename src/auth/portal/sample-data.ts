import type { AuthSettings } from '../context.ts'

/** Whether the pages show sample patients: the embedded FHIR server was given some. */
export function showsSampleData({ fhir }: AuthSettings): boolean {
  return fhir.upstreamUrl === undefined && fhir.samplePatients > 0
}
