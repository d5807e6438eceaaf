import { fhirPathWrittenParts, isFhirPathPatch, type WrittenPart } from '../../fhir/index.ts'
import { isJsonObject, type JsonObject } from './json.ts'

type Node = Record<string, unknown>

/**
 * What a patch writes, as a resource that has nothing else: the values that it adds and replaces, less what a later
 * operation removes. Values moved or copied from the stored resource are unknown here. Undefined if it is not a patch.
 */
export function patchedParts(patch: unknown, type: string): JsonObject | undefined {
  const parts = isFhirPathPatch(patch) ? fhirPathWrittenParts(patch, type) : jsonPatchParts(patch)
  if (!parts) return undefined
  const root: Node = {}
  for (const { steps, value } of parts) if (steps.length > 0) set(root, steps, value)
  return listsOf(root) as JsonObject
}

function jsonPatchParts(patch: unknown): readonly WrittenPart[] | undefined {
  if (!Array.isArray(patch) || !patch.every(isJsonObject)) return undefined
  return patch.flatMap(({ op, path, value }) => {
    if (typeof path !== 'string' || !path.startsWith('/')) return []
    const steps = path
      .slice(1)
      .split('/')
      .map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    if (op === 'add' || op === 'replace') return [{ steps, value }]
    return op === 'remove' ? [{ steps, value: undefined }] : []
  })
}

function set(node: Node, steps: readonly string[], value: unknown): void {
  const [step = '', ...rest] = steps
  if (rest.length === 0) {
    // Every `-` is an element of its own.
    const name = step === '-' ? `${Object.keys(node).length}` : step
    define(node, name, value)
    return
  }
  const below = Object.hasOwn(node, step) ? node[step] : undefined
  const next: Node = typeof below === 'object' && below !== null ? { ...below } : {}
  define(node, step, next)
  set(next, rest, value)
}

// A step named `__proto__` is a member like any other.
function define(node: Node, name: string, value: unknown): void {
  Object.defineProperty(node, name, { value, enumerable: true, configurable: true, writable: true })
}

/** Objects whose members are numbers were lists. */
function listsOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).filter(([, it]) => it !== undefined)
  if (entries.length > 0 && entries.every(([name]) => /^\d+$/.test(name)))
    return entries.map(([, it]) => listsOf(it))
  const node: Node = {}
  for (const [name, it] of entries) define(node, name, listsOf(it))
  return node
}
