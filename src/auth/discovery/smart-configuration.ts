import type { AuthSettings } from '../context.ts'
import { plainScopes } from '../grant/grant-scope.ts'
import { serverMetadata } from './server-metadata.ts'

/** What of the settings shows in the document. */
export type SmartConfigurationSettings = Pick<AuthSettings, 'issuerUrl'> & {
  readonly fhir: Pick<AuthSettings['fhir'], 'scopeContexts'>
}

/** Advertised is what works (SMART 2.2, conformance): each capability is shown by a test. */
const CAPABILITIES = [
  'launch-ehr',
  'authorize-post',
  'client-public',
  'client-confidential-symmetric',
  'sso-openid-connect',
  'context-banner',
  'context-ehr-patient',
  'context-ehr-encounter',
  'permission-offline',
  'permission-online',
  'permission-v1',
  'permission-v2',
] as const

/** `{fhir_url}/.well-known/smart-configuration`. The FHIR server serves it; only the auth server knows what is true. */
export function smartConfiguration({ issuerUrl, fhir }: SmartConfigurationSettings) {
  const { response_modes_supported: _, scopes_supported: __, ...metadata } = serverMetadata({ issuerUrl })
  // A clinician's scopes; `system/` is for back ends.
  const contexts = fhir.scopeContexts.filter(context => context !== 'system')
  return {
    ...metadata,
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
    scopes_supported: [
      ...plainScopes,
      ...contexts.flatMap(context => [`${context}/*.rs`, `${context}/*.cruds`]),
    ],
    capabilities: [...CAPABILITIES, ...contexts.map(context => `permission-${context}`)],
  }
}
