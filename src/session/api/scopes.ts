import { type Permission, parseScope, parseScopes, permits, type Scope } from '../../smart/index.ts'

/**
 * The required scopes that the granted scopes do not cover (API-10). Each permission of a required scope may be covered by
 * any `patient/` or `user/` scope for the type, including v1 and granular scopes.
 */
export function findMissingScopes(required: readonly string[], granted: string): readonly string[] {
  const scopes = parseScopes(granted)
  return required.filter(text => !isCovered(text, scopes))
}

function isCovered(text: string, granted: readonly Scope[]): boolean {
  const needed = parseScope(text)
  if (needed?.kind !== 'resource') return granted.some(scope => scope.text === text)
  return [...needed.permissions].every(permission =>
    granted.some(scope => covers(scope, needed.type, permission)),
  )
}

/** `system/` is for programs without a user: it gives a session nothing. */
function covers(scope: Scope, type: string, permission: Permission): boolean {
  return permits(scope, type, permission) && scope.context !== 'system'
}
