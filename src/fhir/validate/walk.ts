import type { Fault } from '../resource.ts'

/** Deeper than any real resource; a Bundle of Questionnaires with nested items stays well under it. */
export const deepest = 100

/** Enough to mend a resource by; a hostile body must not be answered with a larger one. */
const mostFaults = 100

/** Where a validation stands, and what it has found. */
export interface Walk {
  /** Names and array indexes from the root to the value in hand. */
  readonly path: (string | number)[]
  readonly faults: Fault[]
  depth: number
  /** The resource that `#` references are about: its contained ids, and which of them are referred to. */
  container: Container
}

export interface Container {
  readonly ids: ReadonlySet<string>
  readonly referred: Set<string>
}

export const nothingContained: Container = { ids: new Set(), referred: new Set() }

export function startWalk(root: string): Walk {
  return { path: [root], faults: [], depth: 0, container: nothingContained }
}

/** Texts never repeat the value: it may be about a person. */
export function addFault(walk: Walk, code: Fault['code'], text: string): void {
  if (walk.faults.length < mostFaults) walk.faults.push({ path: formatPath(walk.path), code, text })
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
