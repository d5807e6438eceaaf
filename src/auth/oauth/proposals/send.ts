import type { AuthUser } from '../../base/user.ts'
import type { AuthContext } from '../context.ts'

/** An answer of the FHIR server. */
export interface FhirAnswer {
  readonly status: number
  readonly etag: string | undefined
  readonly text: string
}

export type ProposalContext = Pick<AuthContext, 'settings' | 'fetch' | 'fhirTokens'>

interface FhirCall {
  /** Below the FHIR base. */
  readonly path: string
  /** The scopes of a token that is made for this call. */
  readonly scope: string
  readonly purpose: 'proposal' | 'signature'
  /** Of the browser. */
  readonly address: string
  /** A transaction. */
  readonly bundle?: string
}

/** How much longer than its upstream the FHIR server may take. */
const OWN_SECONDS = 10

/** Sends a request with the person's own rights. Undefined without an answer. */
export async function sendAs(
  { settings, fetch, fhirTokens }: ProposalContext,
  user: AuthUser,
  { path, scope, purpose, address, bundle }: FhirCall,
): Promise<FhirAnswer | undefined> {
  const token = await fhirTokens.forProposal(user, { purpose, address }, scope)
  try {
    const response = await fetch(`${settings.fhirBaseUrl}${path === '' ? '' : `/${path}`}`, {
      method: bundle === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/fhir+json',
        'accept-encoding': 'identity',
        ...(bundle !== undefined && { 'content-type': 'application/fhir+json' }),
      },
      ...(bundle !== undefined && { body: bundle }),
      redirect: 'error',
      signal: AbortSignal.timeout((settings.fhir.upstream.timeoutSeconds + OWN_SECONDS) * 1000),
    })
    const etag = response.headers.get('etag') ?? undefined
    return { status: response.status, etag, text: await response.text() }
  } catch {
    return undefined
  }
}
