import { findScopeListFault, MOST_SCOPES } from '../../smart/index.ts'
import { Refusal } from '../refusal.ts'

/** Refuses a list of scopes that exceeds a limit. */
export function checkRequestedScope(asked: string): Refusal | undefined {
  const fault = findScopeListFault(asked)
  return fault === undefined ? undefined : new Refusal('invalid_scope', `The scope ${fault}.`)
}

/** Refuses a grant without scopes, and one with more scopes than a token may have. */
export function checkGrantedScope(granted: string): Refusal | undefined {
  if (granted === '') return new Refusal('invalid_scope', 'None of the scopes can be granted to this client.')
  if (granted.split(' ').length > MOST_SCOPES)
    return new Refusal(
      'invalid_scope',
      `The scope combines with the registered granular scopes to more than ${MOST_SCOPES} scopes.`,
    )
  const fault = findScopeListFault(granted)
  return fault === undefined
    ? undefined
    : new Refusal('invalid_scope', `The scope, combined with the registered granular scopes, ${fault}.`)
}
