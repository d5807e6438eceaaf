import type { AuthSettings } from '../context.ts'
import { plainScopes } from '../grant/grant-scope.ts'
import { paths } from '../paths.ts'

type Named = Pick<AuthSettings, 'issuerUrl'>

/** What the authorization server can do (RFC 8414; OIDC Discovery, 3). Made from the settings, never from a request. */
export function serverMetadata({ issuerUrl }: Named) {
  return {
    issuer: issuerUrl,
    authorization_endpoint: issuerUrl + paths.authorize,
    token_endpoint: issuerUrl + paths.token,
    jwks_uri: issuerUrl + paths.jwks,
    scopes_supported: plainScopes,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
  }
}

export function openidConfiguration(settings: Named) {
  return {
    ...serverMetadata(settings),
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    claims_supported: ['iss', 'sub', 'aud', 'exp', 'iat', 'auth_time', 'nonce', 'fhirUser', 'name'],
    prompt_values_supported: ['none', 'login', 'consent', 'select_account'],
    claims_parameter_supported: false,
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
  }
}
