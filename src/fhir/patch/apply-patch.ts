import { isFailure } from '../../core/index.ts'
import { type Element, findStructure, getKey } from '../definitions.ts'
import type { Work } from '../work.ts'
import { applyFhirPathPatch, readsByFhirPathPatch } from './fhirpath-patch.ts'
import { applyJsonPatch, findJsonPatchReads } from './json-patch.ts'
import {
  isFhirPathPatch,
  type Patched,
  type PatchOperation,
  parseOperations,
  type Value,
} from './operations.ts'
import type { PatchStep } from './patch-path.ts'

/** Applies a JSON Patch or a FHIRPath Patch to a copy of a resource. */
export function applyPatch(resource: unknown, patch: unknown, work: Work): Patched {
  return isFhirPathPatch(patch)
    ? applyFhirPathPatch(resource, patch, work)
    : applyJsonPatch(resource, patch, work)
}

/** Whether a patch reads stored data, so that its success or its result reveals it. */
export function readsStored(patch: unknown): boolean {
  return isFhirPathPatch(patch) ? readsByFhirPathPatch(patch) : findJsonPatchReads(patch)
}

/** A value that a patch writes, with its position in JSON; undefined if it is deleted. */
export interface WrittenPart {
  readonly steps: readonly string[]
  readonly value: unknown
}

/**
 * The values that a FHIRPath Patch writes, without the stored resource; undefined if it is malformed. The item of a
 * list that a condition selects is unknown and gets a position after all numbered ones.
 */
export function findFhirPathWrittenParts(patch: unknown, type: string): readonly WrittenPart[] | undefined {
  const operations = parseOperations(patch)
  if (isFailure(operations)) return undefined
  return operations.flatMap((it, index) => findParts(it, type, index))
}

const UNKNOWN_PLACE = 1_000_000_000

function findParts(operation: PatchOperation, type: string, index: number): readonly WrittenPart[] {
  const free = `${UNKNOWN_PLACE + index}`
  const { steps } = operation.path
  switch (operation.type) {
    case 'add':
      return listWritten(type, [...steps, { kind: 'child', name: operation.name }], operation.value, free)
    case 'insert':
    case 'replace':
      return listWritten(type, steps, operation.value, free)
    case 'delete': {
      const place = findPlace(type, steps, free)
      return place ? [{ steps: place.steps, value: undefined }] : []
    }
    case 'move':
      return []
  }
}

function listWritten(
  type: string,
  steps: readonly PatchStep[],
  value: Value,
  free: string,
): readonly WrittenPart[] {
  const place = findPlace(type, steps, free)
  if (!place) return []
  if (value.kind === 'content') {
    const { element } = place
    const chosen = element?.choice
      ? element.types.find(({ code }) => code.toLowerCase() === value.type.toLowerCase())
      : undefined
    const last = element && chosen ? [...place.steps.slice(0, -1), getKey(element, chosen)] : place.steps
    return [{ steps: last, value: value.content }]
  }
  return value.parts.flatMap(([name, part]) =>
    listWritten(place.type, [{ kind: 'child', name }], part, free).map(inner => ({
      ...inner,
      steps: [...place.steps, ...inner.steps],
    })),
  )
}

interface Place {
  readonly steps: readonly string[]
  readonly type: string
  readonly element: Element | undefined
}

/** Undefined for an unknown element name: such a patch fails. */
function findPlace(type: string, steps: readonly PatchStep[], free: string): Place | undefined {
  let place: Place = { steps: [], type, element: undefined }
  for (const [at, step] of steps.entries()) {
    if (step.kind !== 'child') continue
    const element = findStructure(place.type)?.elements.get(step.name)
    const next = steps[at + 1]
    const chosen = next?.kind === 'type' ? element?.types.find(({ code }) => code === next.type) : undefined
    const one = chosen ?? element?.types[0]
    if (!element || !one) return undefined
    const index = next?.kind === 'index' && next.index >= 0 ? `${next.index}` : free
    const key = getKey(element, one)
    place = { steps: [...place.steps, key, ...(element.max > 1 ? [index] : [])], type: one.code, element }
  }
  return place
}
