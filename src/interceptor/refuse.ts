import { fill, type StoredFacts } from '../core/index.ts'
import {
  createOutcome,
  type FhirReason,
  getFhirWords,
  type IssueCode,
  isFhirReason,
  type Refused,
} from '../fhir/index.ts'
import type { Permission, ScopeContext } from '../smart/index.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** No granted scope covers the type and the permission. */
export interface InsufficientScope {
  /** Of a context: the server ignores the contexts of granted scopes. For a protected type: only a `system/` scope that names it would do. */
  readonly reason: 'insufficient-scope' | 'insufficient-scope-of-context' | 'insufficient-scope-for-protected'
  readonly method: Method
  /** A resource type, or `*` if the request names none. */
  readonly type: string
  readonly permission: Permission
  /** The contexts whose scopes would grant access with this token. */
  readonly contexts: readonly ScopeContext[]
  /** The claims that scopes of the other contexts would need. */
  readonly missing: readonly ('patient' | 'fhirUser')[]
  /** The contexts of granted scopes that this server does not accept. */
  readonly ignored?: readonly ScopeContext[] | undefined
  /** The same for the other types that a search uses. */
  readonly others?: readonly InsufficientScope[] | undefined
}

/** Why a request is refused: by the names in docs/errors.md. */
export type Refusal =
  | InsufficientScope
  | {
      readonly reason: string
      readonly permission?: undefined
      readonly facts?: StoredFacts
      /** The scope that covers type and permission, but not the request. */
      readonly by?: string | undefined
      /** With 405: the methods that the URL supports. */
      readonly allow?: readonly string[]
    }

/** Turns a refusal into a response (RFC 6750, 3). */
export function refuse(refusal: Refusal): Refused {
  return refusal.permission === undefined ? refuseFor(refusal) : refuseScope(refusal)
}

/** A reason without words is a bug of the caller, and refused as one. */
function refuseFor(refusal: Exclude<Refusal, InsufficientScope>): Refused {
  const { facts = {}, by, allow } = refusal
  const reason = isFhirReason(refusal.reason) ? refusal.reason : 'broken'
  const { hint } = getFhirWords(reason)
  const refused = makeRefused(reason, facts, hint && fill(hint, facts))
  if (allow) return { ...refused, headers: { allow: allow.join(', ') } }
  return by === undefined ? refused : { ...refused, by }
}

function refuseScope(refusal: InsufficientScope): Refused {
  const { reason, method, type, others = [] } = refusal
  const [narrow, wide] = listRequiredScopes(refusal)
  const more = others.map(it => listRequiredScopes(it)[0])
  const isSystem = reason === 'insufficient-scope-for-protected'
  const facts = { method, type, narrow, ...(!isSystem && { wide }) }
  const hint = isSystem ? fill(getFhirWords(reason).hint ?? '', facts) : describePermittingScopes(refusal)
  const hints = more.length === 0 ? hint : `${hint}. The search also uses: ${more.join(', ')}`
  return makeRefused(reason, facts, hints, [narrow, ...more])
}

/** The narrowest scope that would permit the request, and the widest `patient/` scope. */
export function listRequiredScopes({
  reason,
  type,
  permission,
}: InsufficientScope): readonly [string, string] {
  const permissions = permission === 'r' || permission === 's' ? 'rs' : permission
  const context = reason === 'insufficient-scope-for-protected' ? 'system' : 'patient'
  return [`${context}/${type}.${permission}`, `patient/*.${permissions}`]
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

/** A request that is not understood gets the same codes, whatever part of it is not. */
const CODES: Readonly<Record<number, IssueCode>> = { 400: 'invalid', 404: 'not-supported' }

function makeRefused(
  reason: FhirReason,
  facts: StoredFacts,
  hint: string | undefined,
  scopes?: readonly string[],
): Refused {
  const { status, code, sentence, challenge, retryAfter } = getFhirWords(reason)
  const said = fill(sentence, facts)
  const text = challenge !== undefined || said.endsWith('.') ? said : `${said}.`
  const headers: Record<string, string> = {}
  if (challenge !== undefined) headers['www-authenticate'] = fill(challenge, facts)
  if (retryAfter !== undefined) headers['retry-after'] = retryAfter
  const outcome = createOutcome(CODES[status] ?? code, text, { hint })
  const refused = { allowed: false, status, headers, outcome, reason, ...(scopes && { scopes }) } as const
  const named = Object.keys(facts).length === 0 ? refused : { ...refused, facts }
  return hint === undefined ? named : { ...named, hint }
}
