import type { Person } from '../../web/index.ts'
import type { AuthSettings } from '../context.ts'

/** Whether a page shows sample patients: the embedded FHIR server was given some, and nobody else is on the page. */
export function showsSampleData({ fhir }: AuthSettings, onPage: readonly Person[] = []): boolean {
  return fhir.upstreamUrl === undefined && fhir.samplePatients > 0 && onPage.every(({ sample }) => sample)
}
