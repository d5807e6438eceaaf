import {
  allowInsecureRequests,
  Configuration,
  clockSkew,
  customFetch,
  enableNonRepudiationChecks,
  None,
  type ServerMetadata,
} from 'openid-client'
import type { AppContext } from '../context.ts'

/**
 * `openid-client` for one auth server. The id_token's signature is checked against the key set although it comes
 * straight from the token endpoint. Plain http only where the FHIR base itself was configured with it.
 */
export function oauthClient(
  context: AppContext,
  fhirBaseUrl: string,
  metadata: ServerMetadata,
  fetch: typeof globalThis.fetch = context.fetch,
): Configuration {
  const skew = Math.round((context.clock() - Date.now()) / 1000)
  const client = new Configuration(metadata, context.settings.app.clientId, { [clockSkew]: skew }, None())
  client[customFetch] = (url, options) => fetch(url, options as RequestInit)
  client.timeout = Math.max(1, Math.ceil(context.timeoutMs / 1000))
  enableNonRepudiationChecks(client)
  if (fhirBaseUrl.startsWith('http:')) allowInsecureRequests(client)
  return client
}
