import type { Person } from '../../web/index.ts'
import type { AuthSettings } from '../context.ts'

/** Whether all patients on a page are sample patients of the embedded FHIR server. */
export function showsSampleData({ fhir }: AuthSettings, onPage: readonly Person[] = []): boolean {
  return fhir.upstreamUrl === undefined && fhir.samplePatients > 0 && onPage.every(({ sample }) => sample)
}
