import {
  MOST_SCOPES,
  type PlainScope,
  parseScope,
  parseScopes,
  type Scope,
  type ScopeContext,
} from '../../smart/index.ts'
import { type AllowedScopes, allowedScopes, canonical, withLetters } from './narrow.ts'

/** What a granted scope depends on besides the request. */
export interface ScopeTerms {
  /** The scopes that the client may have at most. */
  readonly allowed: string
  readonly hasPatient: boolean
  readonly hasEncounter: boolean
  /** Whether an EHR launch was resolved. */
  readonly launched: boolean
  readonly searchPermission: 'r' | 's'
  /** The contexts that the FHIR server honours. */
  readonly contexts: readonly ScopeContext[]
}

/** The plain scopes that we keep, and when. Anything else plain is dropped. */
const PLAIN = new Map<string, (terms: ScopeTerms) => boolean>([
  ['openid', () => true],
  ['fhirUser', () => true],
  ['profile', () => true],
  ['online_access', () => true],
  ['offline_access', () => true],
  ['launch', terms => terms.launched],
  ['launch/patient', terms => terms.hasPatient],
  ['launch/encounter', terms => terms.hasEncounter],
])

/** The plain scopes that are advertised. */
export const plainScopes: readonly string[] = [...PLAIN.keys()]

/**
 * What is granted of what was asked, in the order of asking: no more than the client may have; unknown and malformed
 * scopes are dropped; `patient/` never without a patient. Empty when nothing is left.
 */
export function grantScope(asked: string, terms: ScopeTerms): string {
  const allowed = allowedScopes(parseScopes(terms.allowed))
  return grantEach(asked, scope => granting(scope, allowed, terms))
}

/**
 * Collects what is granted for each asked scope, each text once. Where two granular scopes meet, their combination is
 * granted, so there may be more than was asked for: it stops once there are more than `MOST_SCOPES`.
 */
export function grantEach(asked: string, grant: (scope: Scope) => readonly string[]): string {
  const granted = new Set<string>()
  for (const text of asked.split(' ')) {
    const scope = parseScope(text)
    if (scope) for (const part of grant(scope)) granted.add(part)
    if (granted.size > MOST_SCOPES) break
  }
  return [...granted].join(' ')
}

function granting(scope: Scope, allowed: AllowedScopes, terms: ScopeTerms): readonly string[] {
  if (scope.kind === 'plain') return isPlainOpen(scope, allowed, terms) ? [scope.text] : []
  const known = canonical(scope)
  if (!known || !isContextOpen(scope.context, terms)) return []
  return allowed
    .narrow(known)
    .flatMap(part => grantable(part, terms) ?? [])
    .map(part => part.text)
}

// SMART 2.2: a role that is not known brings what there is of that type (`launch/patient?role=…`).
function isPlainOpen(scope: PlainScope, allowed: AllowedScopes, terms: ScopeTerms): boolean {
  const [name = ''] = scope.text.split('?')
  const isAllowed = allowed.covers(scope) || allowed.covers({ kind: 'plain', text: name })
  return isAllowed && PLAIN.get(name)?.(terms) === true
}

// Contract 5.5: where `r` searches too, a lone `s` would buy nothing and is not granted.
function grantable(scope: Parameters<typeof withLetters>[0], { searchPermission }: ScopeTerms) {
  return searchPermission === 's' || scope.permissions.has('r')
    ? scope
    : withLetters(scope, permission => permission !== 's')
}

function isContextOpen(context: ScopeContext, terms: ScopeTerms): boolean {
  switch (context) {
    case 'patient':
      return terms.hasPatient && terms.contexts.includes(context)
    case 'user':
      return terms.contexts.includes(context)
    // Only for back ends that act for nobody (SMART backend services), never for a clinician.
    case 'system':
      return false
  }
}
