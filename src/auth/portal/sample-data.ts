import type { AuthSettings } from '../context.ts'

/** Whether what the pages show is synthetic: the embedded FHIR server with sample patients. */
export function showsSampleData({ fhir }: AuthSettings): boolean {
  return fhir.upstreamUrl === undefined && fhir.samplePatients > 0
}
