import { Refusal } from '../refusal.ts'
import type { RequestInput } from './request.ts'

/** `aud` (or its synonym `resource`) must be our FHIR base, with or without a trailing slash (SMART 2.2, 7.1.4). */
export function checkAudience({ parameters }: RequestInput, fhirBaseUrl: string): Refusal | undefined {
  const named = ['aud', 'resource'].flatMap(name => parameters.get(name) ?? [])
  if (named.length === 0) return new Refusal('invalid_request', 'The parameter aud is missing.')
  const ours = [fhirBaseUrl, `${fhirBaseUrl}/`]
  return named.every(audience => ours.includes(audience))
    ? undefined
    : new Refusal('invalid_request', 'The aud is not the FHIR server of this authorization server.')
}
