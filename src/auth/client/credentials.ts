import type { Parameters } from '../parameters.ts'
import { Refusal } from '../refusal.ts'

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
export function readCredentials(authorization: string | undefined, form: Parameters): Credentials | Refusal {
  const methods = [authorization, form.get('client_secret'), findAssertion(form)]
  if (methods.filter(method => method !== undefined).length > 1)
    return new Refusal('invalid_request', 'The client must use one authentication method only.')
  if (findAssertion(form) !== undefined) return readAssertion(form)
  return authorization === undefined ? readForm(form) : readBasic(authorization, form)
}

function findAssertion(form: Parameters): string | undefined {
  return form.get('client_assertion') ?? form.get('client_assertion_type')
}

// RFC 7521, 4.2.
function readAssertion(form: Parameters): Credentials | Refusal {
  const assertion = form.get('client_assertion')
  if (form.get('client_assertion_type') !== ASSERTION_TYPE || assertion === undefined)
    return new Refusal('invalid_request', `The client_assertion_type must be ${ASSERTION_TYPE}.`)
  return { kind: 'assertion', clientId: form.get('client_id'), assertion }
}

function readForm(form: Parameters): Credentials | Refusal {
  const clientId = form.get('client_id')
  if (clientId === undefined) return readRefreshToken(form)
  const secret = form.get('client_secret')
  return secret === undefined ? { kind: 'name', clientId } : { kind: 'secret', clientId, secret }
}

function readRefreshToken(form: Parameters): Credentials | Refusal {
  const refreshToken = form.get('grant_type') === 'refresh_token' ? form.get('refresh_token') : undefined
  return refreshToken === undefined || form.get('client_secret') !== undefined
    ? new Refusal('invalid_client', 'The request names no client.')
    : { kind: 'refresh-token', refreshToken }
}

function readBasic(authorization: string, form: Parameters): Credentials | Refusal {
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
  return { kind: 'secret', clientId: id, secret }
}

function splitPair(pair: string): readonly [] | readonly [string | undefined, string | undefined] {
  const at = pair.indexOf(':')
  return at < 1 ? [] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))]
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
