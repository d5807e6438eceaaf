import type { Kysely } from 'kysely'
import { isFailure } from '../../../core/index.ts'
import { isSameText, type Schema, sha256 } from '../../../store/index.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import type { Parameters } from '../../base/request.ts'
import type { ComparedValue } from '../../words/reason.ts'
import type { AuthContext } from '../context.ts'
import { type AssertedClient, checkAssertion, consumeAssertion, decodeAssertion } from './assertion.ts'
import { type Client, findClient, findRegisteredClient } from './client.ts'
import { refuseUnregistered } from './compare-id.ts'

/** A client with valid credentials. An assertion has not been consumed yet. */
export type VerifiedClient = AssertedClient | { readonly client: Client; readonly claims?: undefined }

/** Authenticates the client of a request by the method that it is registered for. */
export async function authenticateClient(
  context: AuthContext,
  authorization: string | undefined,
  form: Parameters,
): Promise<Client | AuthRefusal> {
  const verified = await verifyClient(context, authorization, form)
  return isFailure(verified) ? verified : consumeProof(context.store.db, verified)
}

/** Consumes the assertion, if there is one, in the transaction of the request's changes. */
export async function consumeProof(
  db: Kysely<Schema>,
  verified: VerifiedClient,
): Promise<Client | AuthRefusal> {
  const { client } = verified
  return verified.claims === undefined || (await consumeAssertion(db, verified))
    ? client
    : refuse('assertion-used').withKnown({ clientId: client.id })
}

/** Checks the credentials without using up an assertion. */
export async function verifyClient(
  context: AuthContext,
  authorization: string | undefined,
  form: Parameters,
): Promise<VerifiedClient | AuthRefusal> {
  const credentials = readCredentials(authorization, form)
  if (isFailure(credentials)) return credentials
  if (credentials.kind === 'assertion') {
    const verified = await checkAssertion(context, credentials)
    if (!isFailure(verified)) return verified
    const named = credentials.clientId ?? readNamedClient(credentials.assertion)
    const client = named === undefined ? undefined : await findRegisteredClient(context.store.db, named)
    const refusal = verified.withKnown({ clientId: client?.id })
    return client && client.authMethod !== 'private_key_jwt'
      ? refusal.withComparison(compareMethods('private_key_jwt', client))
      : refusal
  }
  const client =
    credentials.kind === 'refresh-token'
      ? await findClientOfRefreshToken(context, credentials.refreshToken)
      : await findClient(context.store.db, context, credentials.clientId)
  if (!client) return refuseUnusable(context, credentials)
  const checked = checkCredentials(client, credentials)
  if (!isFailure(checked)) return { client: checked }
  return checked
    .withKnown({ clientId: client.id })
    .withComparison(compareMethods(nameMethod(credentials, authorization), client))
}

/** The attempts of a client that was disabled are recorded as its own. */
async function refuseUnusable(
  context: AuthContext,
  credentials: Exclude<Credentials, { readonly kind: 'assertion' }>,
): Promise<AuthRefusal> {
  const id = credentials.kind === 'refresh-token' ? undefined : credentials.clientId
  const registered = id === undefined ? undefined : await findRegisteredClient(context.store.db, id)
  if (registered) return refuse('client-unusable').withKnown({ clientId: registered.id })
  return credentials.kind === 'refresh-token'
    ? refuse('client-of-refresh-token-unknown')
    : refuseUnregistered(context, 'client-not-registered', credentials.clientId)
}

/** The names of RFC 7591, 2. */
function nameMethod({ kind }: Credentials, authorization: string | undefined): string {
  if (kind !== 'secret') return 'none'
  return authorization === undefined ? 'client_secret_post' : 'client_secret_basic'
}

function compareMethods(sent: string, { authMethod }: Client): ComparedValue {
  const expected =
    authMethod === 'client_secret' ? ['client_secret_basic', 'client_secret_post'] : [authMethod]
  return { name: 'client authentication', sent, expected, origin: 'registered' }
}

async function findClientOfRefreshToken(
  context: AuthContext,
  refreshToken: string,
): Promise<Client | undefined> {
  const grant = await context.store.db
    .selectFrom('refresh_token')
    .innerJoin('grant', 'grant.id', 'refresh_token.grant_id')
    .select('grant.client_id')
    .where('token_hash', '=', sha256(refreshToken))
    .executeTakeFirst()
  return grant && findClient(context.store.db, context, grant.client_id)
}

function checkCredentials(
  client: Client,
  credentials: Exclude<Credentials, { readonly kind: 'assertion' }>,
): Client | AuthRefusal {
  switch (client.authMethod) {
    case 'none':
      return credentials.kind === 'secret' ? refuse('public-client-sent-secret') : client
    case 'client_secret':
      return isSecretOf(client, credentials) ? client : refuse('client-secret-wrong')
    case 'private_key_jwt':
      return refuse('client-assertion-missing')
  }
}

function isSecretOf({ secretHash }: Client, credentials: Credentials): boolean {
  return (
    credentials.kind === 'secret' &&
    secretHash !== undefined &&
    isSameText(sha256(credentials.secret), secretHash)
  )
}

function readNamedClient(assertion: string): string | undefined {
  const iss = decodeAssertion(assertion)?.claims.iss
  return typeof iss === 'string' && !iss.includes('\0') ? iss : undefined
}

/** How a client identifies or authenticates itself. */
export type Credentials =
  | { readonly kind: 'name'; readonly clientId: string }
  | { readonly kind: 'secret'; readonly clientId: string; readonly secret: string }
  /** A refresh request of a public client may omit `client_id`, as fhirclient does: the token identifies the client. */
  | { readonly kind: 'refresh-token'; readonly refreshToken: string }
  /** The assertion names the client; the form may too. */
  | { readonly kind: 'assertion'; readonly clientId: string | undefined; readonly assertion: string }

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** Reads the client's credentials. Only one method may be used (RFC 6749, 2.3). */
function readCredentials(authorization: string | undefined, form: Parameters): Credentials | AuthRefusal {
  const methods = [authorization, form.get('client_secret'), findAssertion(form)]
  if (methods.filter(method => method !== undefined).length > 1)
    return refuse('client-authentication-repeated')
  if (findAssertion(form) !== undefined) return readAssertion(form)
  return authorization === undefined ? readFormCredentials(form) : readBasic(authorization, form)
}

function findAssertion(form: Parameters): string | undefined {
  return form.get('client_assertion') ?? form.get('client_assertion_type')
}

// RFC 7521, 4.2.
function readAssertion(form: Parameters): Credentials | AuthRefusal {
  const assertion = form.get('client_assertion')
  if (form.get('client_assertion_type') !== ASSERTION_TYPE || assertion === undefined)
    return refuse('client-assertion-type-unknown', { type: ASSERTION_TYPE })
  return { kind: 'assertion', clientId: form.get('client_id'), assertion }
}

function readFormCredentials(form: Parameters): Credentials | AuthRefusal {
  const clientId = form.get('client_id')
  if (clientId === undefined) return readRefreshToken(form)
  const secret = form.get('client_secret')
  return secret === undefined ? { kind: 'name', clientId } : { kind: 'secret', clientId, secret }
}

function readRefreshToken(form: Parameters): Credentials | AuthRefusal {
  const refreshToken = form.get('grant_type') === 'refresh_token' ? form.get('refresh_token') : undefined
  return refreshToken === undefined || form.get('client_secret') !== undefined
    ? refuse('client-not-named')
    : { kind: 'refresh-token', refreshToken }
}

function readBasic(authorization: string, form: Parameters): Credentials | AuthRefusal {
  const encoded = /^Basic +([A-Za-z0-9+/=_-]+)$/i.exec(authorization)?.[1]
  const [id, secret] = encoded === undefined ? [] : splitPair(Buffer.from(encoded, 'base64').toString())
  if (id === undefined || secret === undefined) return refuse('basic-header-malformed')
  const named = form.get('client_id')
  if (named !== undefined && named !== id) return refuse('clients-differ')
  return { kind: 'secret', clientId: id, secret }
}

function splitPair(pair: string): readonly [] | readonly [string | undefined, string | undefined] {
  const colon = pair.indexOf(':')
  return colon < 1 ? [] : [decode(pair.slice(0, colon)), decode(pair.slice(colon + 1))]
}

// RFC 6749, 2.3.1: both are form-encoded. PostgreSQL does not accept a NUL.
function decode(text: string): string | undefined {
  try {
    const decoded = decodeURIComponent(text.replaceAll('+', ' '))
    return decoded.includes('\0') ? undefined : decoded
  } catch {
    return undefined
  }
}
