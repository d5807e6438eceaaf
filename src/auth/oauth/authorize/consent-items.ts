import { parseScopes, type ResourceScope } from '../../../smart/index.ts'
import { listCategories, offeredTypes } from '../grants/kinds.ts'
import { keepPermissions, narrowTo, ScopeIndex } from '../grants/narrow.ts'

/** A checkbox on the consent page. Its parts count only while it is checked. */
export interface Choice {
  readonly scope: ResourceScope
  readonly parts: readonly Choice[]
}

/** The read or the write half of a requested scope. */
export interface ConsentItem extends Choice {
  readonly writes: boolean
  /** The whole scope. */
  readonly of: ResourceScope
}

/**
 * Lists the items of a consent page, in the order of the request. A scope that another scope covers has no checkbox
 * and is granted with the other one (`patient/*.rs patient/Patient.rs`).
 */
export function listConsentItems(grantable: string): readonly ConsentItem[] {
  const all = splitScopes(grantable)
  const others = new ScopeIndex(all.map(({ scope }) => scope))
  const covered = new Set<ConsentItem>()
  for (const item of all.toReversed()) {
    others.remove(item.scope)
    if (others.covers(item.scope)) covered.add(item)
    else others.add(item.scope)
  }
  return all.filter(item => !covered.has(item))
}

/** Splits every resource scope into its read and write halves. */
export function splitScopes(grantable: string): readonly ConsentItem[] {
  return parseScopes(grantable)
    .filter(scope => scope.kind === 'resource')
    .flatMap(scope => [makeHalf(scope, false) ?? [], makeHalf(scope, true) ?? []].flat())
}

function makeHalf(of: ResourceScope, writes: boolean): ConsentItem | undefined {
  const scope = keepPermissions(of, permission => (permission === 'r' || permission === 's') !== writes)
  return scope && { scope, of, writes, parts: listParts(scope, writes) }
}

/** The user can limit a wildcard to types, and some types to categories. */
function listParts(scope: ResourceScope, writes: boolean): readonly Choice[] {
  if (scope.query.length > 0) return []
  if (scope.type === '*')
    return offeredTypes
      .flatMap(type => narrowTo(scope, { type }) ?? [])
      .map(part => ({ scope: part, parts: listParts(part, writes) }))
  return (writes ? [] : listCategories(scope.type))
    .flatMap(({ token }) => narrowTo(scope, { query: [['category', token]] }) ?? [])
    .map(part => ({ scope: part, parts: [] }))
}
