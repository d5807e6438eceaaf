import { checkLengths } from '../authorize/check-parameters.ts'
import { type Client, findClient } from '../client/client.ts'
import type { AuthContext } from '../context.ts'
import { verifyOwnJwt } from '../keys/own-jwt.ts'
import type { Parameters } from '../parameters.ts'
import { Refusal } from '../refusal.ts'

/** A logout that a client asked for (OIDC RP-Initiated Logout, 2), verified. */
export interface EndRequest {
  readonly client: Client | undefined
  /** Where to go afterwards: a URL that the client registered, with its `state`; none for an unverified client. */
  readonly returnTo: string | undefined
  /** Whom the client's id_token names. */
  readonly subject: string | undefined
}

/** Nobody is ever sent to an address that the client did not register. */
export async function readEndRequest(
  context: AuthContext,
  parameters: Parameters,
): Promise<EndRequest | Refusal> {
  if (parameters.unreadable.size > 0)
    return new Refusal('invalid_request', 'A parameter is repeated or unreadable.')
  const tooLong = checkLengths({ parameters })
  if (tooLong) return tooLong
  const hint = await readHint(context, parameters.get('id_token_hint'))
  if (hint instanceof Refusal) return hint
  const named = parameters.get('client_id')
  if (hint && named !== undefined && named !== hint.clientId)
    return new Refusal('invalid_request', 'The id_token_hint is of another client.')
  const clientId = named ?? hint?.clientId
  const client = clientId === undefined ? undefined : await findClient(context.store, clientId)
  const returnTo = returnAddress(client, parameters)
  if (returnTo instanceof Refusal) return returnTo
  return { client, returnTo, subject: hint?.subject }
}

// It may have expired: the session that it came from need not have.
async function readHint({ keys, settings }: AuthContext, hint: string | undefined) {
  if (hint === undefined) return undefined
  const { iss, sub, aud } = verifyOwnJwt(hint, 'JWT', await keys.published()) ?? {}
  return iss === settings.issuerUrl && typeof sub === 'string' && typeof aud === 'string'
    ? { subject: sub, clientId: aud }
    : new Refusal('invalid_request', 'The id_token_hint is not an id_token of this server.')
}

function returnAddress(client: Client | undefined, parameters: Parameters): string | undefined | Refusal {
  const address = parameters.get('post_logout_redirect_uri')
  if (address === undefined) return undefined
  if (!client?.postLogoutRedirectUris.includes(address))
    return new Refusal('invalid_request', 'The post_logout_redirect_uri is not registered for the client.')
  // Anybody can register a URL, and must not make our address lead there.
  if (!client.approved) return undefined
  const state = parameters.get('state')
  if (state === undefined) return address
  return `${address}${address.includes('?') ? '&' : '?'}${new URLSearchParams({ state })}`
}
