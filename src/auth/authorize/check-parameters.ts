import { LIMITS } from '../limits.ts'
import { Refusal, type RefusalCode } from '../refusal.ts'
import type { RequestInput } from './request.ts'

/** None of these parameters may be repeated (RFC 6749, 3.1). */
const READ = [
  'response_type',
  'response_mode',
  'scope',
  'state',
  'aud',
  'resource',
  'launch',
  'code_challenge',
  'code_challenge_method',
  'nonce',
  'prompt',
  'max_age',
  'id_token_hint',
  'login_hint',
  'request',
  'request_uri',
  'registration',
] as const

/** OIDC Core, 6 and 7. Ignoring these parameters would change the meaning of the request. */
const UNSUPPORTED: Readonly<Record<string, RefusalCode>> = {
  request: 'request_not_supported',
  request_uri: 'request_uri_not_supported',
  registration: 'registration_not_supported',
}

export function checkRepeated({ parameters }: RequestInput): Refusal | undefined {
  const name = READ.find(one => parameters.unreadable.has(one))
  return name && new Refusal('invalid_request', `The parameter ${name} is repeated or unreadable.`)
}

/** Anonymous requests are stored for ten minutes, so their parameters are limited. */
export function checkLengths({ parameters }: Pick<RequestInput, 'parameters'>): Refusal | undefined {
  const found = Object.entries(LIMITS.parameters).find(
    ([name, longest]) => (parameters.get(name)?.length ?? 0) > longest,
  )
  return (
    found &&
    new Refusal('invalid_request', `The parameter ${found[0]} is longer than ${found[1]} characters.`)
  )
}

export function checkUnsupported({ parameters }: RequestInput): Refusal | undefined {
  const found = Object.entries(UNSUPPORTED).find(([name]) => parameters.get(name) !== undefined)
  return found && new Refusal(found[1], `The parameter ${found[0]} is not supported.`)
}
