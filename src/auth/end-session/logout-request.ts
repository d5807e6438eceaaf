import { checkLengths } from '../authorize/check-parameters.ts'
import { type Client, findClient } from '../client/client.ts'
import type { AuthContext } from '../context.ts'
import { verifyOwnJwt } from '../keys/own-jwt.ts'
import type { Parameters } from '../parameters.ts'
import { Refusal } from '../refusal.ts'

/** A verified logout request of a client (OIDC RP-Initiated Logout, 2). */
export interface LogoutRequest {
  readonly client: Client | undefined
  /** A registered URL of the client with its `state`; undefined for an unverified client. */
  readonly returnTo: string | undefined
  /** The user of the `id_token_hint`. */
  readonly subject: string | undefined
}

/** Redirects go only to URLs that the client registered. */
export async function readLogoutRequest(
  context: AuthContext,
  parameters: Parameters,
): Promise<LogoutRequest | Refusal> {
  if (parameters.unreadable.size > 0)
    return new Refusal('invalid_request', 'A parameter is repeated or unreadable.')
  const tooLong = checkLengths({ parameters })
  if (tooLong) return tooLong
  const hint = await readHint(context, parameters.get('id_token_hint'))
  if (hint instanceof Refusal) return hint
  const named = parameters.get('client_id')
  if (hint && named !== undefined && named !== hint.clientId)
    return new Refusal('invalid_request', 'The id_token_hint belongs to another client.')
  const clientId = named ?? hint?.clientId
  const client = clientId === undefined ? undefined : await findClient(context.store, clientId)
  const returnTo = findReturnUrl(client, parameters)
  if (returnTo instanceof Refusal) return returnTo
  return { client, returnTo, subject: hint?.subject }
}

// OIDC RP-Initiated Logout, 2: an expired ID token is accepted.
async function readHint({ keys, settings }: AuthContext, hint: string | undefined) {
  if (hint === undefined) return undefined
  const { iss, sub, aud } = verifyOwnJwt(hint, 'JWT', await keys.listPublicKeys()) ?? {}
  return iss === settings.issuerUrl && typeof sub === 'string' && typeof aud === 'string'
    ? { subject: sub, clientId: aud }
    : new Refusal('invalid_request', 'The id_token_hint is not an id_token of this server.')
}

function findReturnUrl(client: Client | undefined, parameters: Parameters): string | undefined | Refusal {
  const url = parameters.get('post_logout_redirect_uri')
  if (url === undefined) return undefined
  if (!client?.postLogoutRedirectUris.includes(url))
    return new Refusal('invalid_request', 'The post_logout_redirect_uri is not registered for the client.')
  // Anyone can register a URL: this server must not be an open redirector.
  if (!client.approved) return undefined
  const state = parameters.get('state')
  if (state === undefined) return url
  return `${url}${url.includes('?') ? '&' : '?'}${new URLSearchParams({ state })}`
}
