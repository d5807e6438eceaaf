import { definitions, findStructure } from '../definitions.ts'
import { compileInvariant } from './compile-expression.ts'
import type { Scope, Test } from './items.ts'

/** A rule of the R4 definitions beyond cardinality and types. `key` is its name in R4. */
export interface Invariant {
  readonly key: string
  readonly text: string
  readonly severity: 'error' | 'warning'
  readonly holds: Test
}

/** The invariants of a structure with those of its base, or of an element (`Organization.address`). */
export function listInvariants(path: string): readonly Invariant[] {
  const rows = Object.hasOwn(definitions.invariants, path) ? definitions.invariants[path] : undefined
  const own = (rows ?? []).map(([key, severity, expression, text]) => ({
    key,
    severity,
    text: `${text.trim().replace(/\.$/, '')} (${key})`,
    holds: compileInvariant(expression, findStructure(path) ? path : undefined),
  }))
  const base = definitions.structures[path]?.base
  return base === undefined ? own : [...listInvariants(base), ...own]
}

/** Whether a value breaks an invariant. An empty result does not: the expression compares values that are absent. */
export function breaksInvariant(invariant: Invariant, value: unknown, scope: Scope): boolean {
  scope.context = value
  return invariant.holds(value, scope) === false
}
