import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { ServerMetadata } from 'openid-client'

/** The fields of `.well-known/smart-configuration` that the app reads (SMART App Launch 2.2, conformance). */
const SmartConfiguration = Type.Object({
  issuer: Type.Optional(Type.String()),
  jwks_uri: Type.Optional(Type.String()),
  authorization_endpoint: Type.String({ minLength: 1 }),
  token_endpoint: Type.String({ minLength: 1 }),
  revocation_endpoint: Type.Optional(Type.String()),
  token_endpoint_auth_methods_supported: Type.Optional(Type.Array(Type.String())),
  authorization_response_iss_parameter_supported: Type.Optional(Type.Boolean()),
  id_token_signing_alg_values_supported: Type.Optional(Type.Array(Type.String())),
})

/**
 * The auth server behind a FHIR base, as `openid-client` wants it. Undefined when the document does not name one, or
 * would send codes and tokens of an https base over plain http.
 */
export function readSmartConfiguration(fhirBaseUrl: string, document: unknown): ServerMetadata | undefined {
  if (!Value.Check(SmartConfiguration, document)) return undefined
  const endpoints = resolveEndpoints(fhirBaseUrl, {
    authorization_endpoint: document.authorization_endpoint,
    token_endpoint: document.token_endpoint,
    revocation_endpoint: document.revocation_endpoint,
    jwks_uri: document.jwks_uri,
  })
  return (
    endpoints && {
      issuer: document.issuer ?? fhirBaseUrl,
      ...endpoints,
      authorization_response_iss_parameter_supported:
        document.authorization_response_iss_parameter_supported ?? false,
      ...(document.token_endpoint_auth_methods_supported && {
        token_endpoint_auth_methods_supported: document.token_endpoint_auth_methods_supported,
      }),
      ...(document.id_token_signing_alg_values_supported && {
        id_token_signing_alg_values_supported: document.id_token_signing_alg_values_supported,
      }),
    }
  )
}

/** Names the field of a smart-configuration that cannot be used. */
export function describeConfigurationFault(fhirBaseUrl: string, document: unknown): string {
  const [fault] = Value.Errors(SmartConfiguration, document)
  if (fault) return `${fault.path.slice(1) || 'document'}: ${fault.message}`
  const scheme = fhirBaseUrl.startsWith('https:') ? 'an https URL' : 'an http or https URL'
  return `an endpoint or jwks_uri: Expected ${scheme}`
}

/** Older servers use relative URLs. They are relative to the FHIR base. */
function resolveEndpoints(
  fhirBaseUrl: string,
  endpoints: Readonly<Record<string, string | undefined>>,
): Record<string, string> | undefined {
  const secure = fhirBaseUrl.startsWith('https:')
  const resolved: Record<string, string> = {}
  for (const [name, text] of Object.entries(endpoints)) {
    if (text === undefined) continue
    const url = URL.parse(text, `${fhirBaseUrl}/`)
    if (url === null || !(url.protocol === 'https:' || (!secure && url.protocol === 'http:')))
      return undefined
    resolved[name] = url.href
  }
  return resolved
}
