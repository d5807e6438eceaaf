import { type Element, findStructure, keyOf } from '../structure.ts'
import { attempt } from './failure.ts'
import { type PatchOperation, parseOperations, type Value } from './operations.ts'
import type { PatchStep } from './patch-path.ts'

/** A value that a patch writes, by its place in JSON; undefined where it is deleted. */
export interface WrittenPart {
  readonly steps: readonly string[]
  readonly value: unknown
}

/**
 * What a FHIRPath Patch writes, told without the stored resource; undefined where it is none. Which item of a list a
 * condition finds is not known: each has a place of its own, after all that have a number.
 */
export function findFhirPathWrittenParts(patch: unknown, type: string): readonly WrittenPart[] | undefined {
  const parsed = attempt(() => parseOperations(patch).flatMap((it, index) => partOf(it, type, index)))
  return 'value' in parsed ? parsed.value : undefined
}

const UNKNOWN_PLACE = 1_000_000_000

function partOf(operation: PatchOperation, type: string, index: number): readonly WrittenPart[] {
  const free = `${UNKNOWN_PLACE + index}`
  const { steps } = operation.path
  switch (operation.type) {
    case 'add':
      return written(type, [...steps, { kind: 'child', name: operation.name }], operation.value, free)
    case 'insert':
    case 'replace':
      return written(type, steps, operation.value, free)
    case 'delete': {
      const place = placeOf(type, steps, free)
      return place ? [{ steps: place.steps, value: undefined }] : []
    }
    case 'move':
      return []
  }
}

function written(
  type: string,
  steps: readonly PatchStep[],
  value: Value,
  free: string,
): readonly WrittenPart[] {
  const place = placeOf(type, steps, free)
  if (!place) return []
  if (value.kind === 'content') {
    const { element } = place
    const chosen = element?.choice
      ? element.types.find(({ code }) => code.toLowerCase() === value.type.toLowerCase())
      : undefined
    const last = element && chosen ? [...place.steps.slice(0, -1), keyOf(element, chosen)] : place.steps
    return [{ steps: last, value: value.content }]
  }
  return value.parts.flatMap(([name, part]) =>
    written(place.type, [{ kind: 'child', name }], part, free).map(inner => ({
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

/** Undefined for a name that the definitions do not have: such a patch fails. */
function placeOf(type: string, steps: readonly PatchStep[], free: string): Place | undefined {
  let place: Place = { steps: [], type, element: undefined }
  for (const [at, step] of steps.entries()) {
    if (step.kind !== 'child') continue
    const element = findStructure(place.type)?.elements.get(step.name)
    const next = steps[at + 1]
    const chosen = next?.kind === 'type' ? element?.types.find(({ code }) => code === next.type) : undefined
    const one = chosen ?? element?.types[0]
    if (!element || !one) return undefined
    const index = next?.kind === 'index' && next.index >= 0 ? `${next.index}` : free
    const key = keyOf(element, one)
    place = { steps: [...place.steps, key, ...(element.max > 1 ? [index] : [])], type: one.code, element }
  }
  return place
}
