import type { Permission } from '../fhir/index.ts'
import type { Grant, ResourceScope } from '../smart/index.ts'
import { findProposer } from './proposals.ts'

/** Whether a scope has the permission, for any type. Each call is decided by itself. */
export function mayUse(grant: Grant, permission: Permission): boolean {
  return listResourceScopes(grant).some(({ permissions }) => permissions.has(permission))
}

/** Whether somebody could sign what the caller proposes, and a scope permits some change. */
export function mayPropose(grant: Grant): boolean {
  const isWriting = mayUse(grant, 'c') || mayUse(grant, 'u') || mayUse(grant, 'd')
  return isWriting && findProposer(grant) !== undefined
}

export function listResourceScopes({ scopes }: Grant): readonly ResourceScope[] {
  return scopes.filter(scope => scope.kind === 'resource')
}
