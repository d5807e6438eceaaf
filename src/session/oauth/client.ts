import {
  allowInsecureRequests,
  type ClientAuth,
  Configuration,
  clockSkew,
  customFetch,
  enableNonRepudiationChecks,
  modifyAssertion,
  None,
  PrivateKeyJwt,
  type ServerMetadata,
} from 'openid-client'
import type { AppContext } from '../context.ts'

/**
 * `openid-client` for one auth server. It verifies the signature of the ID token, although the token comes from the
 * token endpoint. It allows plain http only if the FHIR base is configured with http.
 */
export async function createOAuthClient(
  context: AppContext,
  fhirBaseUrl: string,
  metadata: ServerMetadata,
  fetch: typeof globalThis.fetch = context.fetch,
): Promise<Configuration> {
  const skew = Math.round((context.clock() - Date.now()) / 1000)
  const proof = await chooseClientAuth(context, metadata)
  const client = new Configuration(metadata, context.settings.app.clientId, { [clockSkew]: skew }, proof)
  client[customFetch] = (url, options) => fetch(url, options as RequestInit)
  client.timeout = Math.max(1, Math.ceil(context.authTimeoutMs / 1000))
  enableNonRepudiationChecks(client)
  if (fhirBaseUrl.startsWith('http:')) allowInsecureRequests(client)
  return client
}

async function chooseClientAuth(
  { settings, appKeys }: AppContext,
  metadata: ServerMetadata,
): Promise<ClientAuth> {
  const { token_endpoint_auth_methods_supported: methods, token_endpoint: tokenEndpoint } = metadata
  if (settings.app.authMethod === 'none' || !methods?.includes('private_key_jwt')) return None()
  const { kid, privateKey } = await appKeys.signing()
  return PrivateKeyJwt(
    { key: privateKey, kid },
    {
      // SMART 2.2, asymmetric authentication: the audience is the token endpoint.
      [modifyAssertion]: (header, claims) => {
        header.typ = 'JWT'
        claims.aud = tokenEndpoint
      },
    },
  )
}
