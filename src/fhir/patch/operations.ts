import { isFailure, isRecord, mapOrFail } from '../../core/index.ts'
import { isSameJson, toPlain } from '../json.ts'
import { PATCH_DEPTH, PATCH_OPERATIONS, PATCH_PATH_CHARACTERS, PATCH_SHIFTS } from '../limits.ts'
import type { MALFORMED_PATCHES, UNUSABLE_PATCHES } from '../reasons/content.ts'
import { type Because, failFor } from '../reasons/reasons.ts'
import type { Work } from '../work.ts'
import { type PatchPath, parsePatchPath } from './patch-path.ts'

/** An operation of a FHIRPath Patch (R4 fhirpatch.html). */
export type PatchOperation = { readonly path: PatchPath } & (
  | { readonly type: 'add'; readonly name: string; readonly value: Value }
  | { readonly type: 'insert'; readonly index: number; readonly value: Value }
  | { readonly type: 'delete' }
  | { readonly type: 'replace'; readonly value: Value }
  | { readonly type: 'move'; readonly source: number; readonly destination: number }
)

/** `valueHumanName`, or the parts of a backbone element. */
export type Value =
  | { readonly kind: 'content'; readonly type: string; readonly content: unknown }
  | { readonly kind: 'parts'; readonly parts: readonly (readonly [name: string, value: Value])[] }

/** Whether a body is meant as a FHIRPath Patch. */
export function isFhirPathPatch(body: unknown): body is { readonly parameter: readonly unknown[] } {
  return isRecord(body) && body.resourceType === 'Parameters' && Array.isArray(body.parameter)
}

export function parseOperations(patch: unknown): readonly PatchOperation[] | PatchProblem {
  if (!isFhirPathPatch(patch)) return failFor('patch-not-operations')
  if (patch.parameter.length > PATCH_OPERATIONS)
    return failFor('patch-operations-too-many', { most: PATCH_OPERATIONS })
  return mapOrFail(patch.parameter, parseOperation)
}

function parseOperation(parameter: unknown, index: number): PatchOperation | PatchProblem {
  if (!isRecord(parameter) || parameter.name !== 'operation' || !Array.isArray(parameter.part))
    return failFor('patch-operation-missing', { index })
  const parts = new Map<unknown, unknown>(
    parameter.part.map((part: unknown) => [isRecord(part) ? part.name : undefined, part]),
  )
  const read = (name: string, member: string): unknown => {
    const part = parts.get(name)
    return isRecord(part) ? part[member] : undefined
  }
  const text = read('path', 'valueString')
  if (typeof text === 'string' && text.length > PATCH_PATH_CHARACTERS)
    return failFor('patch-path-too-long', { index, most: PATCH_PATH_CHARACTERS })
  const path = typeof text === 'string' ? parsePatchPath(text) : undefined
  if (!path) return failFor('patch-path-unsupported', { index })
  const type = read('type', 'valueCode')
  const readNumber = (name: string) => {
    const value = read(name, 'valueInteger')
    const isIndex = typeof value === 'number' && Number.isInteger(value) && value >= 0
    return isIndex ? value : failFor('patch-part-missing', { index, part: name })
  }
  const readValue = () => parseValue(parts.get('value')) ?? failFor('patch-value-unreadable', { index })
  switch (type) {
    case 'add': {
      const name = toPlain(read('name', 'valueString'))
      if (typeof name !== 'string') return failFor('patch-part-missing', { index, part: 'name' })
      const value = readValue()
      return isFailure(value) ? value : { type, path, name, value }
    }
    case 'insert': {
      const place = readNumber('index')
      if (isFailure(place)) return place
      const value = readValue()
      return isFailure(value) ? value : { type, path, index: place, value }
    }
    case 'delete':
      return { type, path }
    case 'replace': {
      const value = readValue()
      return isFailure(value) ? value : { type, path, value }
    }
    case 'move': {
      const source = readNumber('source')
      if (isFailure(source)) return source
      const destination = readNumber('destination')
      return isFailure(destination) ? destination : { type, path, source, destination }
    }
    default:
      return failFor('patch-type-unknown', { index })
  }
}

function parseValue(part: unknown): Value | undefined {
  if (!isRecord(part)) return undefined
  const { name: _, ...rest } = part
  const [member, another] = Object.entries(rest)
  if (!member || another) return undefined
  const [key, content] = member
  if (key === 'part') return Array.isArray(content) ? parseParts(content) : undefined
  if (key === 'resource') return { kind: 'content', type: 'Resource', content }
  return /^value[A-Z]/.test(key) ? { kind: 'content', type: key.slice('value'.length), content } : undefined
}

function parseParts(candidates: readonly unknown[]): Value | undefined {
  const parts: [string, Value][] = []
  for (const part of candidates) {
    const value = parseValue(part)
    const name = isRecord(part) ? toPlain(part.name) : undefined
    if (!value || typeof name !== 'string') return undefined
    parts.push([name, value])
  }
  return { kind: 'parts', parts }
}

/** Why a patch cannot be applied to a resource or, if it is malformed, to any. */
export type PatchProblem = Because<keyof typeof UNUSABLE_PATCHES | keyof typeof MALFORMED_PATCHES>

export type Patched = { readonly value: unknown } | PatchProblem

/** What all operations of a patch may still cost: items that they shift and digits that they compare. */
export interface PatchWork {
  left: number
  readonly request: Work
}

export function openWork(request: Work): PatchWork {
  return { left: PATCH_SHIFTS, request }
}

/** Counts elements before they are visited. */
export function countElements({ request }: PatchWork, elements: number): PatchProblem | undefined {
  return request.count('element', elements) && failFor('patch-costs-too-much')
}

/** Fails if the operations have cost too much. */
export function checkWork({ left }: PatchWork): PatchProblem | undefined {
  return left < 0 ? TOO_MUCH_WORK : undefined
}

const TOO_MUCH_WORK = failFor('patch-shifts-too-much', { most: PATCH_SHIFTS })

/** Whether two values are equal. False once the comparisons have cost too much. */
export function isSameValue(a: unknown, b: unknown, work: PatchWork): boolean {
  return isSameJson(a, b, digits => {
    work.left -= digits
    return work.left >= 0
  })
}

/** Inserts an item into a list and shifts those after it. */
export function insertItem(
  items: unknown[],
  index: number,
  item: unknown,
  work: PatchWork,
): PatchProblem | undefined {
  work.left -= items.length - index
  if (work.left >= 0) items.splice(index, 0, item)
  return checkWork(work)
}

export function removeItem(items: unknown[], index: number, work: PatchWork): PatchProblem | undefined {
  work.left -= items.length - index
  if (work.left >= 0) items.splice(index, 1)
  return checkWork(work)
}

/** Refuses a value that is nested too deeply for recursive code. */
export function checkDepth(value: unknown, index: number): PatchProblem | undefined {
  return isShallow(value, PATCH_DEPTH)
    ? undefined
    : failFor('patch-value-too-deep', { index, most: PATCH_DEPTH })
}

function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every(item => isShallow(item, levels - 1))
}
