import type { AppSettings } from './context.ts'

/** Where patients are picked. */
export function getPortalUrl({ issuerUrl }: AppSettings): string {
  return `${issuerUrl}/portal`
}

/** True when the patients are the generated ones of the embedded FHIR server. */
export function isSampleData({ fhir, fhirBaseUrl, app }: AppSettings): boolean {
  return (
    fhir.upstreamUrl === undefined &&
    fhir.samplePatients > 0 &&
    app.issuers.every(base => base === fhirBaseUrl)
  )
}
