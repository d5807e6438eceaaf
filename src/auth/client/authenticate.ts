import { type Store, sameText, sha256 } from '../../store/index.ts'
import type { Parameters } from '../parameters.ts'
import { Refusal } from '../refusal.ts'
import { type Client, findClient } from './client.ts'
import { readCredentials } from './credentials.ts'

/** The client that sent a request to the token endpoint, proven in the way it was registered with. */
export async function authenticateClient(
  store: Store,
  authorization: string | undefined,
  form: Parameters,
): Promise<Client | Refusal> {
  const credentials = readCredentials(authorization, form)
  if (credentials instanceof Refusal) return credentials
  const client = await findClient(store, credentials.clientId)
  if (!client) return notProven('the client is not registered')
  switch (client.authMethod) {
    case 'none':
      return credentials.secret === undefined ? client : notProven('a public client sent a secret')
    case 'client_secret':
      return isSecretOf(client, credentials.secret) ? client : notProven('the secret is missing or wrong')
    case 'private_key_jwt':
      return notProven('the client must use private_key_jwt')
  }
}

function isSecretOf(client: Client, secret: string | undefined): boolean {
  return (
    secret !== undefined && client.secretHash !== undefined && sameText(sha256(secret), client.secretHash)
  )
}

// One text for all, so that nobody learns which clients exist.
function notProven(detail: string): Refusal {
  return new Refusal('invalid_client', 'The client is unknown or did not prove itself.', { detail })
}
