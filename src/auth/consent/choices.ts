import { parseScopes, type ResourceScope } from '../../smart/index.ts'
import { narrowedTo, withLetters } from '../grant/narrow.ts'
import { ScopeIndex } from '../grant/scope-index.ts'
import { categoriesOf, offeredTypes } from './kinds.ts'

/** A box on the consent page. Its parts count only while it is ticked itself. */
export interface Choice {
  readonly scope: ResourceScope
  readonly parts: readonly Choice[]
}

/** One half of a scope that is asked for: what it reads, or what it writes. */
export interface Asking extends Choice {
  readonly writes: boolean
  /** The scope that it is a half of. */
  readonly of: ResourceScope
}

/**
 * What a consent page asks about, in the order of asking. What another scope covers has no box of its own: it is granted
 * as far as that one is (`patient/*.rs patient/Patient.rs`).
 */
export function askingsOf(grantable: string): readonly Asking[] {
  const all = halvesOf(grantable)
  const others = new ScopeIndex(all.map(({ scope }) => scope))
  const covered = new Set<Asking>()
  for (const asking of all.toReversed()) {
    others.remove(asking.scope)
    if (others.covers(asking.scope)) covered.add(asking)
    else others.add(asking.scope)
  }
  return all.filter(asking => !covered.has(asking))
}

/** Both halves of every resource scope. */
export function halvesOf(grantable: string): readonly Asking[] {
  return parseScopes(grantable)
    .filter(scope => scope.kind === 'resource')
    .flatMap(scope => [halfOf(scope, false) ?? [], halfOf(scope, true) ?? []].flat())
}

function halfOf(of: ResourceScope, writes: boolean): Asking | undefined {
  const scope = withLetters(of, permission => (permission === 'r' || permission === 's') !== writes)
  return scope && { scope, of, writes, parts: partsOf(scope, writes) }
}

/** A wildcard can be given kind by kind, and some kinds category by category. */
function partsOf(scope: ResourceScope, writes: boolean): readonly Choice[] {
  if (scope.query.length > 0) return []
  if (scope.type === '*')
    return offeredTypes
      .flatMap(type => narrowedTo(scope, { type }) ?? [])
      .map(part => ({ scope: part, parts: partsOf(part, writes) }))
  return (writes ? [] : categoriesOf(scope.type))
    .flatMap(({ token }) => narrowedTo(scope, { query: [['category', token]] }) ?? [])
    .map(part => ({ scope: part, parts: [] }))
}
