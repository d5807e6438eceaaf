import type { Parameters } from '../parameters.ts'
import { Refusal } from '../refusal.ts'

/** How a client names, and perhaps proves, itself at the token endpoint. */
export interface Credentials {
  readonly clientId: string
  readonly secret: string | undefined
}

/** Reads the client's credentials: by one method only (RFC 6749, 2.3). */
export function readCredentials(authorization: string | undefined, form: Parameters): Credentials | Refusal {
  if (form.get('client_assertion') !== undefined || form.get('client_assertion_type') !== undefined)
    return new Refusal('invalid_client', 'Client assertions (private_key_jwt) are not supported.')
  return authorization === undefined ? readForm(form) : readBasic(authorization, form)
}

function readForm(form: Parameters): Credentials | Refusal {
  const clientId = form.get('client_id')
  if (clientId === undefined) return new Refusal('invalid_client', 'The request names no client.')
  return { clientId, secret: form.get('client_secret') }
}

function readBasic(authorization: string, form: Parameters): Credentials | Refusal {
  if (form.get('client_secret') !== undefined)
    return new Refusal('invalid_request', 'The client must use one authentication method only.')
  const encoded = /^Basic +([A-Za-z0-9+/=_-]+)$/i.exec(authorization)?.[1]
  const [id, secret] = encoded === undefined ? [] : splitPair(Buffer.from(encoded, 'base64').toString())
  if (id === undefined || secret === undefined)
    return new Refusal('invalid_client', 'The Authorization header is not a Basic header with id and secret.')
  const named = form.get('client_id')
  if (named !== undefined && named !== id)
    return new Refusal(
      'invalid_request',
      'The client_id and the Authorization header name different clients.',
    )
  return { clientId: id, secret }
}

function splitPair(pair: string): readonly [] | readonly [string | undefined, string | undefined] {
  const at = pair.indexOf(':')
  return at < 1 ? [] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))]
}

// RFC 6749, 2.3.1: both are form-encoded before they are joined. A NUL is in no id or secret.
function decode(text: string): string | undefined {
  try {
    const decoded = decodeURIComponent(text.replaceAll('+', ' '))
    return decoded.includes('\0') ? undefined : decoded
  } catch {
    return undefined
  }
}
