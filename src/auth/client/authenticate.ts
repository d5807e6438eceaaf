import type { Kysely } from 'kysely'
import { isSameText, type Schema, type Store, sha256 } from '../../store/index.ts'
import type { AuthContext } from '../context.ts'
import type { Parameters } from '../parameters.ts'
import { Refusal } from '../refusal.ts'
import {
  type AssertedClient,
  checkAssertion,
  consumeAssertion,
  decodeAssertion,
} from './assertion/check-assertion.ts'
import { type Client, findClient } from './client.ts'
import { type Credentials, readCredentials } from './credentials.ts'

/** A client with valid credentials. An assertion has not been used up yet. */
export type VerifiedClient = AssertedClient | { readonly client: Client; readonly claims?: undefined }

/** Authenticates the client of a request by the method that it is registered for. */
export async function authenticateClient(
  context: AuthContext,
  authorization: string | undefined,
  form: Parameters,
): Promise<Client | Refusal> {
  const verified = await verifyClient(context, authorization, form)
  return verified instanceof Refusal ? verified : consumeProof(context.store.db, verified)
}

/** Uses up the assertion, if there is one, in the transaction of the request's changes. */
export async function consumeProof(db: Kysely<Schema>, verified: VerifiedClient): Promise<Client | Refusal> {
  const { client } = verified
  return verified.claims === undefined || (await consumeAssertion(db, verified))
    ? client
    : refuseAssertion('jti was used before', client)
}

/** Checks the credentials without using up an assertion. */
export async function verifyClient(
  context: AuthContext,
  authorization: string | undefined,
  form: Parameters,
): Promise<VerifiedClient | Refusal> {
  const credentials = readCredentials(authorization, form)
  if (credentials instanceof Refusal) return credentials
  if (credentials.kind === 'assertion') {
    const verified = await checkAssertion(context, credentials)
    if (typeof verified !== 'string') return verified
    const named = credentials.clientId ?? readNamedClient(credentials.assertion)
    return refuseAssertion(verified, named === undefined ? undefined : await findClient(context.store, named))
  }
  const client =
    credentials.kind === 'refresh-token'
      ? await findClientOfRefreshToken(context.store, credentials.refreshToken)
      : await findClient(context.store, credentials.clientId)
  const checked = client
    ? checkCredentials(client, credentials)
    : refuseClient('the client is not registered')
  return checked instanceof Refusal ? checked : { client: checked }
}

async function findClientOfRefreshToken(store: Store, refreshToken: string): Promise<Client | undefined> {
  const grant = await store.db
    .selectFrom('refresh_token')
    .innerJoin('grant', 'grant.id', 'refresh_token.grant_id')
    .select('grant.client_id')
    .where('token_hash', '=', sha256(refreshToken))
    .executeTakeFirst()
  return grant && findClient(store, grant.client_id)
}

function checkCredentials(
  client: Client,
  credentials: Exclude<Credentials, { readonly kind: 'assertion' }>,
): Client | Refusal {
  switch (client.authMethod) {
    case 'none':
      return credentials.kind === 'secret' ? refuseClient('a public client sent a secret', client) : client
    case 'client_secret':
      return isSecretOf(client, credentials) ? client : refuseClient('the secret is missing or wrong', client)
    case 'private_key_jwt':
      return refuseClient('the client must use private_key_jwt', client)
  }
}

function isSecretOf({ secretHash }: Client, credentials: Credentials): boolean {
  return (
    credentials.kind === 'secret' &&
    secretHash !== undefined &&
    isSameText(sha256(credentials.secret), secretHash)
  )
}

// Client ids are not secret, and developers need the reason to fix their client.
function refuseAssertion(reason: string, named?: Client): Refusal {
  const text = `The client assertion was refused: ${reason}.`
  return new Refusal('invalid_client', text, { detail: reason, known: { clientId: named?.id } })
}

// One text for all reasons, so that nobody learns which clients exist.
function refuseClient(detail: string, named?: Client): Refusal {
  const text = 'The client is unknown or could not be authenticated.'
  return new Refusal('invalid_client', text, { detail, known: { clientId: named?.id } })
}

function readNamedClient(assertion: string): string | undefined {
  const iss = decodeAssertion(assertion)?.claims.iss
  return typeof iss === 'string' && !iss.includes('\0') ? iss : undefined
}
