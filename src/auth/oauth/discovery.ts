import {
  getMcpUrl,
  getResourceMetadataUrl,
  MCP_SCOPES,
  RESOURCE_METADATA_PATH,
  type Settings,
} from '../../config/index.ts'
import { paths } from '../base/paths.ts'
import { ACR_VALUES } from '../users/factors/methods.ts'
import { assertionAlgorithms } from './clients/key-sets.ts'
import { plainScopes } from './grants/grant-scope.ts'

type MetadataSettings = Pick<
  Settings,
  'issuerUrl' | 'openRegistration' | 'registrationToken' | 'agents' | 'onLoopback'
>

const CONFIDENTIAL_METHODS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const

/** RFC 8414; OIDC Discovery, 3. Depends on the settings only, never on a request. */
export function buildServerMetadata(settings: MetadataSettings) {
  const { issuerUrl } = settings
  return {
    issuer: issuerUrl,
    authorization_endpoint: issuerUrl + paths.authorize,
    token_endpoint: issuerUrl + paths.token,
    jwks_uri: issuerUrl + paths.jwks,
    introspection_endpoint: issuerUrl + paths.introspect,
    revocation_endpoint: issuerUrl + paths.revoke,
    ...(canRegister(settings) ? { registration_endpoint: issuerUrl + paths.register } : {}),
    ...(acceptsDocuments(settings) ? { client_id_metadata_document_supported: true } : {}),
    scopes_supported: plainScopes,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
    token_endpoint_auth_methods_supported: ['none', ...CONFIDENTIAL_METHODS],
    token_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
    introspection_endpoint_auth_methods_supported: CONFIDENTIAL_METHODS,
    introspection_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
    revocation_endpoint_auth_methods_supported: ['none', ...CONFIDENTIAL_METHODS],
    revocation_endpoint_auth_signing_alg_values_supported: assertionAlgorithms,
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
  }
}

/** An endpoint that refuses everyone is not advertised. */
function canRegister({ openRegistration, registrationToken }: MetadataSettings): boolean {
  return openRegistration || registrationToken !== undefined
}

/** Client ID metadata documents of some host. */
function acceptsDocuments({ agents, onLoopback }: MetadataSettings): boolean {
  return agents.enabled && (onLoopback || agents.clientHosts.length > 0)
}

export function buildOpenidConfiguration(settings: MetadataSettings) {
  return {
    ...buildServerMetadata(settings),
    userinfo_endpoint: settings.issuerUrl + paths.userinfo,
    end_session_endpoint: settings.issuerUrl + paths.endSession,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    claims_supported: [
      'iss',
      'sub',
      'aud',
      'exp',
      'iat',
      'auth_time',
      'acr',
      'amr',
      'nonce',
      'fhirUser',
      'name',
    ],
    acr_values_supported: Object.values(ACR_VALUES),
    prompt_values_supported: ['none', 'login', 'consent', 'select_account'],
    claims_parameter_supported: false,
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
  }
}

export type SmartConfigurationSettings = MetadataSettings & {
  readonly fhir: Pick<Settings['fhir'], 'scopeContexts'>
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

type ResourceSettings = Pick<Settings, 'issuerUrl' | 'fhirBaseUrl' | 'fhir' | 'agents'>

/**
 * The documents in which the FHIR server says whose tokens its resources accept (RFC 9728), by path. Without the path of a
 * resource it is the endpoint of assistants: their clients look there.
 */
export function buildResourceDocuments(settings: ResourceSettings): Readonly<Record<string, object>> {
  const { fhirBaseUrl, fhir, agents } = settings
  const base = describeResource(
    settings,
    fhirBaseUrl,
    fhir.scopeContexts.map(context => `${context}/*.rs`),
  )
  const mcp = describeResource(settings, getMcpUrl(settings), MCP_SCOPES)
  return {
    [RESOURCE_METADATA_PATH]: agents.enabled ? mcp : base,
    [getPath(fhirBaseUrl)]: base,
    ...(agents.enabled && { [getPath(getMcpUrl(settings))]: mcp }),
  }
}

function getPath(resource: string): string {
  return new URL(getResourceMetadataUrl(resource)).pathname
}

function describeResource(
  { issuerUrl }: ResourceSettings,
  resource: string,
  scopes: readonly string[],
): object {
  return {
    resource,
    authorization_servers: [issuerUrl],
    scopes_supported: scopes,
    bearer_methods_supported: ['header'],
  }
}
