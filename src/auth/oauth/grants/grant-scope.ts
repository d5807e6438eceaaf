import { LruMap } from '../../../cache/index.ts'
import {
  findScopeListFault,
  MAX_SCOPES,
  type PlainScope,
  parseScope,
  parseScopes,
  type ResourceScope,
  type Scope,
  type ScopeContext,
  type ScopeListFault,
} from '../../../smart/index.ts'
import { makeFault } from '../../base/fault.ts'
import { LIMITS } from '../../base/limits.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import type { ComparedValue } from '../../words/reason.ts'
import { type AllowedScopes, indexAllowedScopes, keepPermissions, toCanonical } from './narrow.ts'

/** What the granted scopes depend on, except the request. */
export interface ScopeTerms {
  /** The registered scopes of the client. */
  readonly allowed: string
  readonly hasPatient: boolean
  readonly hasEncounter: boolean
  /** Whether it is an EHR launch. */
  readonly launched: boolean
  readonly searchPermission: 'r' | 's'
  /** The contexts that the FHIR server enforces. */
  readonly contexts: readonly ScopeContext[]
  /** Plain scopes that are not granted. */
  readonly withheld?: readonly string[]
  /** A further limit, by an extension of the launch. */
  readonly atMost?: string | undefined
}

/** The supported plain scopes, and when they are granted. */
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

export const plainScopes: readonly string[] = [...PLAIN.keys()]

/**
 * Grants the requested scopes, in their order, as far as the client is registered for them. Drops unknown and malformed
 * scopes, and `patient/` scopes without a patient. Empty if nothing is left.
 */
export function grantScope(requested: string, terms: ScopeTerms): string {
  return rememberScope(['user', requested, terms], () => {
    const allowed = indexAllowedScopes(parseScopes(terms.allowed))
    const granted = grantEach(requested, scope => grantOne(scope, allowed, terms))
    return terms.atMost === undefined
      ? granted
      : grantScope(granted, { ...terms, allowed: terms.atMost, atMost: undefined })
  })
}

const remembered = new LruMap<string>(LIMITS.grantedScopesKept)

/** An app requests the same scopes again and again. The result must depend only on the parts of the key. */
export function rememberScope(key: readonly unknown[], compute: () => string): string {
  const text = JSON.stringify(key)
  const scope = remembered.get(text) ?? compute()
  remembered.set(text, scope)
  return scope
}

/**
 * Collects the granted scopes for each requested scope, without duplicates. Granular scopes of the request and the client
 * are combined, so there may be more than were requested: it stops once there are more than `MAX_SCOPES`.
 */
export function grantEach(requested: string, grant: (scope: Scope) => readonly string[]): string {
  const granted = new Set<string>()
  for (const text of requested.split(' ')) {
    const scope = parseScope(text)
    if (scope) for (const part of grant(scope)) granted.add(part)
    if (granted.size > MAX_SCOPES) break
  }
  return [...granted].join(' ')
}

function grantOne(scope: Scope, allowed: AllowedScopes, terms: ScopeTerms): readonly string[] {
  if (scope.kind === 'plain') return isPlainGranted(scope, allowed, terms) ? [scope.text] : []
  const known = toCanonical(scope)
  if (!known || !isContextGranted(scope.context, terms)) return []
  return allowed.narrow(known).flatMap(part => dropLoneSearch(part, terms.searchPermission))
}

// SMART 2.2: an unknown role is ignored (`launch/patient?role=…`).
function isPlainGranted(scope: PlainScope, allowed: AllowedScopes, terms: ScopeTerms): boolean {
  const [name = ''] = scope.text.split('?')
  const isAllowed = allowed.covers(scope) || allowed.covers({ kind: 'plain', text: name })
  return isAllowed && !terms.withheld?.includes(name) && PLAIN.get(name)?.(terms) === true
}

/** The scope as text. If `r` includes the search, `s` without `r` would grant nothing. */
export function dropLoneSearch(scope: ResourceScope, searchPermission: 'r' | 's'): readonly string[] {
  const kept =
    searchPermission === 's' || scope.permissions.has('r')
      ? scope
      : keepPermissions(scope, permission => permission !== 's')
  return kept ? [kept.text] : []
}

function isContextGranted(context: ScopeContext, terms: ScopeTerms): boolean {
  switch (context) {
    case 'patient':
      return terms.hasPatient && terms.contexts.includes(context)
    case 'user':
      return terms.contexts.includes(context)
    // Only for backend services, never for a user.
    case 'system':
      return false
  }
}

export function compareScope(
  sent: string,
  expected: string,
  origin: ComparedValue['origin'] = 'registered',
): ComparedValue {
  return { name: 'scope', sent, expected: [expected], origin }
}

/** Refuses a list of scopes that exceeds a limit. */
export function checkRequestedScope(asked: string): AuthRefusal | undefined {
  const fault = findScopeListFault(asked)
  return fault === undefined ? undefined : refuse('scope-list-too-large', describeListFault(fault))
}

/** Refuses a grant without scopes, and one with more scopes than a token may have. */
export function checkGrantedScope(granted: string): AuthRefusal | undefined {
  if (granted === '') return refuse('scope-not-grantable')
  if (granted.split(' ').length > MAX_SCOPES)
    return refuse('scope-combinations-too-many', { most: MAX_SCOPES })
  const fault = findScopeListFault(granted)
  return fault === undefined ? undefined : refuse('scope-combinations-too-large', describeListFault(fault))
}

function describeListFault({ reason, most }: ScopeListFault) {
  return { fault: makeFault(reason, { most }) }
}
