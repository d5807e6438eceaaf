import type { Permission } from '../fhir/index.ts'
import type { Grant, ResourceScope } from '../smart/index.ts'

/** Whether a scope has the permission, for any type. Each call is decided by itself. */
export function mayUse(grant: Grant, permission: Permission): boolean {
  return listResourceScopes(grant).some(({ permissions }) => permissions.has(permission))
}

export function listResourceScopes({ scopes }: Grant): readonly ResourceScope[] {
  return scopes.filter(scope => scope.kind === 'resource')
}
