import { findFhirPathWrittenParts, isFhirPathPatch, isRecord, type WrittenPart } from '../../fhir/index.ts'

type Node = Record<string, unknown>

/**
 * Collects what a patch writes as a partial resource: the values that it adds and replaces, without those that a later
 * operation removes. Values moved or copied from the stored resource are unknown. Undefined if it is not a patch.
 */
export function collectPatchedParts(
  patch: unknown,
  type: string,
): Readonly<Record<string, unknown>> | undefined {
  const parts = isFhirPathPatch(patch) ? findFhirPathWrittenParts(patch, type) : readJsonPatch(patch)
  if (!parts) return undefined
  const root: Node = {}
  for (const { steps, value } of parts) if (steps.length > 0) setValue(root, steps, value)
  return restoreLists(root) as Readonly<Record<string, unknown>>
}

function readJsonPatch(patch: unknown): readonly WrittenPart[] | undefined {
  if (!Array.isArray(patch) || !patch.every(isRecord)) return undefined
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

function setValue(node: Node, steps: readonly string[], value: unknown): void {
  const [step = '', ...rest] = steps
  if (rest.length === 0) {
    // RFC 6902, 4.1: `-` appends an element.
    const name = step === '-' ? `${Object.keys(node).length}` : step
    defineMember(node, name, value)
    return
  }
  const below = Object.hasOwn(node, step) ? node[step] : undefined
  const next: Node = typeof below === 'object' && below !== null ? { ...below } : {}
  defineMember(node, step, next)
  setValue(next, rest, value)
}

// `__proto__` must become a member, not the prototype.
function defineMember(node: Node, name: string, value: unknown): void {
  Object.defineProperty(node, name, { value, enumerable: true, writable: true })
}

/** Turns objects whose member names are numbers back into lists. */
function restoreLists(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).filter(([, it]) => it !== undefined)
  if (entries.length > 0 && entries.every(([name]) => /^\d+$/.test(name)))
    return entries.map(([, it]) => restoreLists(it))
  const node: Node = {}
  for (const [name, it] of entries) defineMember(node, name, restoreLists(it))
  return node
}
