import type { Failed } from '../core/index.ts'
import {
  createOutcome,
  describeUnsupportedOperation,
  type IssueCode,
  type Misunderstood,
  type Refused,
  refuseOutsideGrant,
} from '../fhir/index.ts'
import type { Permission, ScopeContext } from '../smart/index.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** No granted scope covers the type and the permission. */
interface InsufficientScope {
  readonly kind: 'insufficient-scope'
  readonly method: Method
  /** A resource type, or `*` if the request names none. */
  readonly type: string
  readonly permission: Permission
  /** The contexts whose scopes would grant access with this token. */
  readonly contexts: readonly ScopeContext[]
  /** Whether only a `system/` scope that names the type would grant access. */
  readonly isProtected?: true | undefined
  /** The claims that scopes of the other contexts would need. */
  readonly missing: readonly ('patient' | 'fhirUser')[]
  /** The contexts of granted scopes that this server does not accept. */
  readonly ignored?: readonly ScopeContext[] | undefined
}

/** A scope covers the type and the permission, but not the resources of the request. */
interface NotWithin {
  readonly kind: 'not-within'
  /** How to get access, derived from the token and the request alone. */
  readonly hint: string
  readonly by?: string | undefined
}

/** The check that a token failed. */
export type TokenCheck =
  | 'not-a-jwt'
  | 'too-long'
  | 'header-wrong'
  | 'typ-wrong'
  | 'iss-wrong'
  | 'aud-wrong'
  | 'times-wrong'
  | 'key-unknown'
  | 'signature-wrong'
  | 'scopes-too-many'
  | 'revoked'

/** Why a request is refused. */
export type Refusal =
  | { readonly kind: 'no-bearer' }
  /** The response says why: the caller has the token, and everything that it is compared with is public. */
  | { readonly kind: 'bad-token'; readonly check: TokenCheck; readonly why: string }
  | { readonly kind: 'expired-token' }
  | { readonly kind: 'no-keys' }
  | { readonly kind: 'no-configuration' }
  | InsufficientScope
  | NotWithin
  | Omit<Misunderstood, keyof Failed | 'problem'>
  /** The server does not offer the operation at this URL, whatever the grant. */
  | { readonly kind: 'unsupported-operation'; readonly name: string }
  /** The audit trail takes no more records (`HostOptions.trail`). */
  | { readonly kind: 'no-trail' }
  | { readonly kind: 'broken' }

/** Turns a refusal into a response (RFC 6750, 3). */
export function refuse(refusal: Refusal): Refused {
  return { ...makeResponse(refusal), reason: refusal.kind }
}

function makeResponse(refusal: Refusal): Refused {
  switch (refusal.kind) {
    case 'no-bearer':
      return makeRefused(
        401,
        'login',
        'Missing or non-Bearer Authorization header. All FHIR requests need a SMART access token.',
        'Bearer',
      )
    case 'bad-token':
      return {
        ...makeRefused(
          401,
          'login',
          'The access token is not valid on this FHIR server.',
          INVALID_TOKEN,
          `The token is not accepted: ${refusal.why}.`,
        ),
        why: refusal.why,
        check: refusal.check,
      }
    case 'expired-token':
      return makeRefused(401, 'expired', 'The access token has expired.', INVALID_TOKEN)
    case 'no-keys':
      return refuseForNow('The access token cannot be verified yet: no key set.')
    case 'no-configuration':
      return refuseForNow('The SMART configuration is not available yet: the auth server is unreachable.')
    case 'insufficient-scope':
      return refuseScope(refusal)
    case 'not-within':
      return { ...refuseOutsideGrant(refusal.hint), ...(refusal.by !== undefined && { by: refusal.by }) }
    case 'misunderstood':
      return {
        ...makeRefused(refusal.status, ISSUE_CODES[refusal.status], `${refusal.text}.`),
        ...(refusal.allow && { headers: { allow: refusal.allow.join(', ') } }),
      }
    case 'unsupported-operation':
      return makeRefused(404, 'not-supported', describeUnsupportedOperation(refusal.name))
    case 'no-trail':
      return refuseForNow('The request cannot be recorded in the audit trail, so it was refused.')
    case 'broken':
      return makeRefused(500, 'exception', 'The request could not be checked, so it was refused.')
  }
}

/** The narrowest scope that would permit the request, and the widest `patient/` scope. */
function listRequiredScopes({ type, permission }: InsufficientScope): readonly [string, string] {
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

function refuseScope(refusal: InsufficientScope): Refused {
  if (refusal.isProtected) return refuseProtected(refusal)
  const [narrow, wide] = listRequiredScopes(refusal)
  return {
    ...makeRefused(
      403,
      'forbidden',
      `Insufficient scope for ${refusal.method} on ${refusal.type}. Required: ${narrow} or ${wide}`,
      `Bearer error="insufficient_scope", scope="${narrow}"`,
      describePermittingScopes(refusal),
    ),
  }
}

function refuseProtected({ method, type, permission }: InsufficientScope): Refused {
  const scope = `system/${type}.${permission}`
  return makeRefused(
    403,
    'forbidden',
    `Insufficient scope for ${method} on ${type}. Required: ${scope}`,
    `Bearer error="insufficient_scope", scope="${scope}"`,
    `${type} changes how the server works: only a system/ scope that names the type permits this`,
  )
}

function describePermittingScopes(refusal: InsufficientScope): string {
  const ends = listRequiredScopes(refusal).map(scope => scope.slice('patient'.length))
  const scopes = new Set(refusal.contexts.flatMap(context => ends.map(end => context + end)))
  const needs = refusal.missing.map(
    it => `a ${it === 'patient' ? it : 'user'}/ scope needs a ${it} in the token`,
  )
  const permitting =
    refusal.contexts.length > 0
      ? `Any one of these scopes would permit it: ${[...scopes].join(', ')}`
      : 'No scope would permit it with this token'
  // First, because other scopes of the same kind would be refused too.
  const ignored = (refusal.ignored ?? []).map(it => `This server accepts no ${it}/ scopes. `)
  return `${ignored.join('')}${[permitting, ...needs].join('; ')}`
}

// 503 and not 401, which would make a client discard a valid token.
function refuseForNow(text: string): Refused {
  const { headers, ...rest } = makeRefused(503, 'transient', text)
  return { ...rest, headers: { ...headers, 'retry-after': '2' } }
}

function makeRefused(
  status: number,
  code: IssueCode,
  text: string,
  challenge?: string,
  hint?: string,
): Refused {
  return {
    allowed: false,
    status,
    headers: challenge === undefined ? {} : { 'www-authenticate': challenge },
    outcome: createOutcome(code, text, { hint }),
    ...(hint !== undefined && { hint }),
  }
}
