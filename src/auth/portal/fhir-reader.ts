import type { Resource } from '../../fhir/index.ts'
import type { Clinician } from '../clinician/clinician.ts'
import type { AuthContext } from '../context.ts'
import { portalToken } from './portal-token.ts'

/** What the FHIR server said. */
export type FhirAnswer =
  | { readonly kind: 'found'; readonly resource: Resource }
  /** There is none, or this clinician may not see it: to the portal the same. */
  | { readonly kind: 'absent' }
  /** No answer, or one that makes no sense. `reason` may be shown. */
  | { readonly kind: 'away'; readonly reason: string; readonly status?: number }

/** Reads from the FHIR server for one clinician. */
export type FhirReader = (path: string) => Promise<FhirAnswer>

const ANSWER_MS = 5000

export async function fhirReader(context: AuthContext, clinician: Clinician): Promise<FhirReader> {
  const authorization = `Bearer ${await portalToken(context, clinician)}`
  return async path => {
    try {
      const response = await context.fetch(`${context.settings.fhirBaseUrl}/${path}`, {
        headers: { authorization, accept: 'application/fhir+json' },
        // The token is for this server alone.
        redirect: 'error',
        signal: AbortSignal.timeout(ANSWER_MS),
      })
      return await answerOf(response)
    } catch (error) {
      return { kind: 'away', reason: isTimeout(error) ? `No answer in ${ANSWER_MS / 1000} s` : 'No answer' }
    }
  }
}

async function answerOf(response: Response): Promise<FhirAnswer> {
  const { status } = response
  if (status === 404 || status === 410 || status === 403) return { kind: 'absent' }
  if (status !== 200) return { kind: 'away', reason: `Answers with an error (${status})`, status }
  const resource: unknown = await response.json()
  return isResource(resource)
    ? { kind: 'found', resource }
    : { kind: 'away', reason: 'Answers with something else than FHIR' }
}

export function isResource(value: unknown): value is Resource {
  return (
    typeof value === 'object' &&
    value !== null &&
    'resourceType' in value &&
    typeof value.resourceType === 'string'
  )
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError'
}
