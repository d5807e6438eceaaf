import { type IssueCode, outcome, outsideGrant, type Refused, unsupportedOperation } from '../fhir/index.ts'
import type { InsufficientScope, Refusal } from './refusal.ts'

/** The response that tells a refusal (service.md 7, contract 4). */
export function refuse(refusal: Refusal): Refused {
  switch (refusal.kind) {
    case 'no-bearer':
      return refused(
        401,
        'login',
        'Missing or non-Bearer Authorization header. All FHIR requests need a SMART access token.',
        'Bearer',
      )
    case 'bad-token':
      return {
        ...refused(
          401,
          'login',
          'The access token is not valid on this FHIR server.',
          INVALID_TOKEN,
          refusal.told && `The access token ${refusal.why}.`,
        ),
        why: refusal.why,
      }
    case 'expired-token':
      return refused(401, 'expired', 'The access token has expired.', INVALID_TOKEN)
    case 'no-keys':
      return unavailable('The access token cannot be verified yet: no key set.')
    case 'no-configuration':
      return unavailable('The SMART configuration cannot be told yet: the auth server was not reached.')
    case 'insufficient-scope':
      return insufficientScope(refusal)
    case 'not-within':
      return { ...outsideGrant(refusal.hint), ...(refusal.by !== undefined && { by: refusal.by }) }
    case 'misunderstood':
      return {
        ...refused(refusal.status, ISSUE_CODES[refusal.status], `${refusal.text}.`),
        ...(refusal.allow && { headers: { allow: refusal.allow.join(', ') } }),
      }
    case 'unsupported-operation':
      return refused(404, 'not-supported', unsupportedOperation(refusal.name))
    case 'broken':
      return refused(500, 'exception', 'The request could not be judged, so it was refused.')
  }
}

/** The scopes that the contracted text names: the narrowest, and the widest of patient data. */
export function requiredScopes({ type, permission }: InsufficientScope): readonly [string, string] {
  const permissions = permission === 'r' || permission === 's' ? 'rs' : permission
  return [`patient/${type}.${permission}`, `patient/*.${permissions}`]
}

const INVALID_TOKEN = 'Bearer error="invalid_token"'

const ISSUE_CODES = {
  400: 'invalid',
  404: 'not-supported',
  405: 'not-supported',
  415: 'not-supported',
} as const satisfies Record<number, IssueCode>

function insufficientScope(refusal: InsufficientScope): Refused {
  const [narrow, wide] = requiredScopes(refusal)
  return {
    ...refused(
      403,
      'forbidden',
      `Insufficient scope for ${refusal.method} on ${refusal.type}. Required: ${narrow} or ${wide}`,
      `Bearer error="insufficient_scope", scope="${narrow}"`,
      permittedBy(refusal),
    ),
  }
}

function permittedBy(refusal: InsufficientScope): string {
  const ends = requiredScopes(refusal).map(scope => scope.slice('patient'.length))
  const scopes = new Set(refusal.contexts.flatMap(context => ends.map(end => context + end)))
  const needs = (refusal.lacking ?? []).map(
    it => `a ${it === 'patient' ? it : 'user'}/ scope needs a ${it} in the token`,
  )
  const told =
    scopes.size > 0
      ? `Any one of these scopes would permit it: ${[...scopes].join(', ')}`
      : 'No scope would permit it to this token'
  return [told, ...needs].join('; ')
}

// What is missing is on its way; a token that the keys would verify is not to be thrown away meanwhile.
function unavailable(text: string): Refused {
  const { headers, ...rest } = refused(503, 'transient', text)
  return { ...rest, headers: { ...headers, 'retry-after': '2' } }
}

function refused(status: number, code: IssueCode, text: string, challenge?: string, hint?: string): Refused {
  return {
    allowed: false,
    status,
    headers: challenge === undefined ? {} : { 'www-authenticate': challenge },
    outcome: outcome(code, text, { hint }),
    ...(hint !== undefined && { hint }),
  }
}
