import type { AuthSettings } from '../context.ts'
import { plainScopes } from '../grant/grant-scope.ts'
import { paths } from '../paths.ts'
import { buildServerMetadata, type MetadataSettings } from './server-metadata.ts'

export type SmartConfigurationSettings = MetadataSettings & {
  readonly fhir: Pick<AuthSettings['fhir'], 'scopeContexts'>
}

/** SMART 2.2, conformance. Every capability has a test. */
const CAPABILITIES = [
  'launch-ehr',
  'launch-standalone',
  'authorize-post',
  'client-public',
  'client-confidential-symmetric',
  'client-confidential-asymmetric',
  'sso-openid-connect',
  'context-banner',
  'context-style',
  'context-ehr-patient',
  'context-ehr-encounter',
  'context-standalone-patient',
  'context-standalone-encounter',
  'permission-offline',
  'permission-online',
  'permission-v1',
  'permission-v2',
] as const

/** `{fhir_url}/.well-known/smart-configuration`, which the FHIR server serves. */
export function buildSmartConfiguration({ fhir, ...settings }: SmartConfigurationSettings) {
  const { response_modes_supported: _, scopes_supported: __, ...metadata } = buildServerMetadata(settings)
  // SMART has no capability for `system/` scopes.
  const capabilities = fhir.scopeContexts.filter(context => context !== 'system')
  return {
    ...metadata,
    management_endpoint: settings.issuerUrl + paths.manage,
    token_endpoint_auth_methods_supported: metadata.token_endpoint_auth_methods_supported.filter(
      method => method !== 'none',
    ),
    scopes_supported: [
      ...plainScopes,
      ...fhir.scopeContexts.flatMap(context => [`${context}/*.rs`, `${context}/*.cruds`]),
    ],
    capabilities: [...CAPABILITIES, ...capabilities.map(context => `permission-${context}`)],
  }
}
