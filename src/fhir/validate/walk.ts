import type { Fault } from '../resource.ts'
import type { Scope } from './items.ts'
import { breaksInvariant, type Invariant } from './plan.ts'

/** Levels of elements in a resource, which are deeper than in any real one. A resource inside a Bundle starts again. */
export const deepest = 100

/** Enough to correct a resource; the response to a hostile body must not be larger than the body. */
const mostFaults = 100

/** The position of a validation, and its findings. */
export interface Walk {
  /** Names and array indexes from the root to the current value. */
  readonly path: (string | number)[]
  readonly faults: Fault[]
  depth: number
  /** The resource that `#` references are resolved in. */
  container: Container
  /** The current resource for invariants. */
  scope: Scope
  /** Whether broken rules that are only recommended are found too. */
  readonly warns: boolean
}

export interface Container {
  /** The types of the contained resources by their ids. */
  readonly types: ReadonlyMap<string, unknown>
  readonly referred: Set<string>
}

export const nothingContained: Container = { types: new Map(), referred: new Set() }

export function startWalk(root: string, warns: boolean): Walk {
  return {
    path: [root],
    faults: [],
    depth: 0,
    container: nothingContained,
    scope: createScope(undefined),
    warns,
  }
}

export function createScope(resource: unknown): Scope {
  return { resource, context: undefined, constants: new Map() }
}

/** Texts never repeat the value, which may be personal data. */
export function addFault(walk: Walk, code: Fault['code'], text: string): void {
  if (walk.faults.length < mostFaults) walk.faults.push({ path: formatPath(walk.path), code, text })
}

export function checkInvariants(walk: Walk, value: unknown, invariants: readonly Invariant[]): void {
  for (const invariant of invariants) {
    const { severity, text } = invariant
    if ((severity === 'warning' && !walk.warns) || !breaksInvariant(invariant, value, walk.scope)) continue
    if (severity === 'error') addFault(walk, 'invariant', text)
    else if (walk.faults.length < mostFaults)
      walk.faults.push({ path: formatPath(walk.path), code: 'invariant', text, severity })
  }
}

export function addFaultAt(walk: Walk, key: string, code: Fault['code'], text: string): void {
  walk.path.push(key)
  addFault(walk, code, text)
  walk.path.pop()
}

function formatPath(path: readonly (string | number)[]): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else text += text === '' ? part : `.${part.length > 80 ? `${part.slice(0, 80)}…` : part}`
  }
  return text
}
