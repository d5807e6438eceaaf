import type { JsonObject } from './json.ts'

type Node = Record<string, unknown>

/**
 * What a JSON Patch (RFC 6902) writes, as a resource that has nothing else: the values of `add` and `replace`, less
 * what a later operation removes. What is moved or copied from the stored resource is not known here.
 */
export function patchedParts(patch: readonly JsonObject[]): JsonObject {
  const root: Node = {}
  for (const { op, path, value } of patch) {
    if (typeof path !== 'string' || !path.startsWith('/')) continue
    const steps = path
      .slice(1)
      .split('/')
      .map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    if (op === 'add' || op === 'replace') set(root, steps, value)
    else if (op === 'remove') set(root, steps, undefined)
  }
  return listsOf(root) as JsonObject
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
