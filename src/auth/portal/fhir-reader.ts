import type { Resource } from '../../fhir/index.ts'
import type { Clinician } from '../clinician/clinician.ts'
import type { AuthContext } from '../context.ts'
import { issuePractitionerToken } from './portal-token.ts'

export type FhirReadResult =
  | { readonly kind: 'found'; readonly resource: Resource }
  /** It does not exist, or this clinician may not see it. */
  | { readonly kind: 'absent' }
  /** No response, or an invalid one. `reason` may be shown. */
  | { readonly kind: 'unavailable'; readonly reason: string; readonly status?: number }

/** Reads from the FHIR server for one clinician. */
export type FhirReader = (path: string) => Promise<FhirReadResult>

const ANSWER_MS = 5000

export async function createFhirReader(context: AuthContext, clinician: Clinician): Promise<FhirReader> {
  return createReader(context, await context.getPortalToken(clinician))
}

type ReaderContext = Pick<AuthContext, 'settings' | 'keys' | 'clock' | 'fetch'>

/** Reads Practitioners before anyone is logged in. */
export async function createPractitionerReader(context: ReaderContext): Promise<FhirReader> {
  return createReader(context, await issuePractitionerToken(context))
}

function createReader(context: Pick<AuthContext, 'settings' | 'fetch'>, token: string): FhirReader {
  const authorization = `Bearer ${token}`
  return async path => {
    try {
      const response = await context.fetch(`${context.settings.fhirBaseUrl}/${path}`, {
        // Compression costs both servers more than the transfer between them.
        headers: { authorization, accept: 'application/fhir+json', 'accept-encoding': 'identity' },
        // The token is for this server only.
        redirect: 'error',
        signal: AbortSignal.timeout(ANSWER_MS),
      })
      return await readResponse(response)
    } catch (error) {
      return {
        kind: 'unavailable',
        reason: isTimeout(error) ? `No response in ${ANSWER_MS / 1000} s` : 'No response',
      }
    }
  }
}

async function readResponse(response: Response): Promise<FhirReadResult> {
  const { status } = response
  if (status === 404 || status === 410 || status === 403) return { kind: 'absent' }
  if (status !== 200) return { kind: 'unavailable', reason: `Error response (${status})`, status }
  const resource: unknown = await response.json()
  return isResource(resource)
    ? { kind: 'found', resource }
    : { kind: 'unavailable', reason: 'The response is not FHIR' }
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
