import { SigningClient } from './signing-client.ts'
import type { TestAuthServer } from './test-auth-server.ts'

/** Registers a backend service that signs with ES384 (SMART 2.2, client-confidential-asymmetric). */
export async function addBackend(auth: TestAuthServer, client_id: string, scope: string): Promise<void> {
  await auth.addClient({
    client_id,
    scope,
    auth_method: 'private_key_jwt',
    jwks: new SigningClient(client_id, auth.time).jwks,
    redirect_uris: '[]',
    launch_url: null,
  })
}

/** Requests an access token of a backend service for this scope. */
export async function requestBackendToken(
  auth: TestAuthServer,
  client_id: string,
  scope: string,
): Promise<string> {
  const aud = `${auth.settings.issuerUrl}/oauth2/token`
  const proof = new SigningClient(client_id, auth.time).makeProof({ aud })
  const response = await auth.requestToken({ grant_type: 'client_credentials', scope, ...proof })
  if (response.statusCode !== 200) throw new Error(`No token: ${response.body}`)
  return response.json().access_token
}
