import type { StructureSource } from './structures.ts'

/** `[key, severity, FHIRPath expression, text]`. */
export type CompiledInvariant = readonly [string, string, string, string]

/**
 * Checked by code of `src/fhir/validate` for all types; or dependent on other resources (ctm-1); or about an element that
 * does not exist (cid-0).
 */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'ele-1',
  'dom-2',
  'dom-3',
  'dom-4',
  'dom-5',
  'ref-1',
  'txt-1',
  'txt-2',
  'ctm-1',
  'cid-0',
])

/** The invariants by the path of their element. An inherited one has a `source` and is left out. */
export function compileInvariants(
  structures: readonly StructureSource[],
): Record<string, readonly CompiledInvariant[]> {
  const elements = structures.flatMap(it => it.snapshot.element)
  return Object.fromEntries(
    elements.flatMap(({ path, constraint = [] }) => {
      const own = constraint.filter(it => it.source === undefined && !LEFT_OUT.has(it.key))
      return own.length === 0
        ? []
        : [[path, own.map(it => [it.key, it.severity, it.expression, it.human] as const)]]
    }),
  )
}
