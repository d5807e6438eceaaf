import type { Client } from '../client/client.ts'
import { isRegisteredRedirectUri } from '../client/redirect-uri.ts'
import { LIMITS } from '../limits.ts'
import type { Parameters } from '../parameters.ts'
import { Refusal } from '../refusal.ts'

export function checkRedirectUri(client: Client, parameters: Parameters): string | Refusal {
  if (parameters.unreadable.has('redirect_uri'))
    return new Refusal('invalid_request', 'The parameter redirect_uri is repeated or unreadable.')
  const redirectUri = parameters.get('redirect_uri')
  if (redirectUri === undefined)
    return new Refusal('invalid_request', 'The parameter redirect_uri is missing.')
  if (redirectUri.length > LIMITS.urlCharacters)
    return new Refusal(
      'invalid_request',
      `The parameter redirect_uri is longer than ${LIMITS.urlCharacters} characters.`,
    )
  if (!isRegisteredRedirectUri(client, redirectUri))
    return new Refusal('invalid_request', 'The redirect_uri is not one of those the app registered.')
  return redirectUri
}
