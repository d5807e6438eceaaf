import type { Evidence } from '../validity/evidence.ts'

/** The statements of an identity provider about a login. */
export interface ProviderLogin {
  readonly issuer: string
  readonly subject: string
  readonly sid?: string | undefined
  readonly acr?: string | undefined
  readonly amr?: readonly string[] | undefined
  /** In milliseconds. */
  readonly authTime?: number | undefined
  readonly idToken?: string | undefined
  /** What the rules of the provider accepted. */
  readonly evidence: Evidence
}
