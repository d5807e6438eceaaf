import type { Kysely } from 'kysely'
import { isSameText, type Schema, type Store, sha256 } from '../../store/index.ts'
import type { AuthContext } from '../context.ts'
import type { Parameters } from '../parameters.ts'
import { Refusal } from '../refusal.ts'
import {
  checkAssertion,
  decodeAssertion,
  type ProvenByAssertion,
  useAssertion,
} from './assertion/check-assertion.ts'
import { type Client, findClient } from './client.ts'
import { type Credentials, readCredentials } from './credentials.ts'

/** A client whose credentials were found good. An assertion among them is still to be used up. */
export type ProvenClient = ProvenByAssertion | { readonly client: Client; readonly claims?: undefined }

/** The client that sent a request to the token endpoint or one like it, proven in the way it was registered with. */
export async function authenticateClient(
  context: AuthContext,
  authorization: string | undefined,
  form: Parameters,
): Promise<Client | Refusal> {
  const proven = await proveClient(context, authorization, form)
  return proven instanceof Refusal ? proven : useProof(context.store.db, proven)
}

/** Uses up the assertion, where there is one: in the transaction of what the request changes, so that both stay or go. */
export async function useProof(db: Kysely<Schema>, proven: ProvenClient): Promise<Client | Refusal> {
  const { client } = proven
  return proven.claims === undefined || (await useAssertion(db, proven))
    ? client
    : assertionRefused('jti was used before', client)
}

/** Checks the credentials, and changes nothing. */
export async function proveClient(
  context: AuthContext,
  authorization: string | undefined,
  form: Parameters,
): Promise<ProvenClient | Refusal> {
  const credentials = readCredentials(authorization, form)
  if (credentials instanceof Refusal) return credentials
  if (credentials.kind === 'assertion') {
    const proven = await checkAssertion(context, credentials)
    if (typeof proven !== 'string') return proven
    const named = credentials.clientId ?? namedIn(credentials.assertion)
    return assertionRefused(proven, named === undefined ? undefined : await findClient(context.store, named))
  }
  const client =
    credentials.kind === 'refresh-token'
      ? await findClientOfRefreshToken(context.store, credentials.refreshToken)
      : await findClient(context.store, credentials.clientId)
  const checked = client ? prove(client, credentials) : notProven('the client is not registered')
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

function prove(
  client: Client,
  credentials: Exclude<Credentials, { readonly kind: 'assertion' }>,
): Client | Refusal {
  switch (client.authMethod) {
    case 'none':
      return credentials.kind === 'secret' ? notProven('a public client sent a secret', client) : client
    case 'client_secret':
      return isSecretOf(client, credentials) ? client : notProven('the secret is missing or wrong', client)
    case 'private_key_jwt':
      return notProven('the client must use private_key_jwt', client)
  }
}

function isSecretOf({ secretHash }: Client, credentials: Credentials): boolean {
  return (
    credentials.kind === 'secret' &&
    secretHash !== undefined &&
    isSameText(sha256(credentials.secret), secretHash)
  )
}

// Client ids are not secret, and a developer needs the reason to fix the client.
function assertionRefused(reason: string, named?: Client): Refusal {
  const text = `The client assertion was refused: ${reason}.`
  return new Refusal('invalid_client', text, { detail: reason, known: { clientId: named?.id } })
}

// One text for all, so that nobody learns which clients exist.
function notProven(detail: string, named?: Client): Refusal {
  const text = 'The client is unknown or did not prove itself.'
  return new Refusal('invalid_client', text, { detail, known: { clientId: named?.id } })
}

function namedIn(assertion: string): string | undefined {
  const iss = decodeAssertion(assertion)?.claims.iss
  return typeof iss === 'string' && !iss.includes('\0') ? iss : undefined
}
