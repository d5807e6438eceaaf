import { toPlain } from '../json.ts'
import { PATCH_DEPTH, PATCH_OPERATIONS, PATCH_PATH_CHARACTERS, PATCH_SHIFTS } from '../limits.ts'
import { isRecord } from '../resource.ts'
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

/** Throws a `PatchFailure` if the patch is malformed. */
export function parseOperations(patch: unknown): readonly PatchOperation[] {
  if (!isFhirPathPatch(patch)) throw new PatchFailure('expected Parameters with operations', true)
  if (patch.parameter.length > PATCH_OPERATIONS)
    throw new PatchFailure(`it has more than ${PATCH_OPERATIONS} operations`, true)
  return patch.parameter.map(parseOperation)
}

function parseOperation(parameter: unknown, index: number): PatchOperation {
  const unreadable = (what: string) => new PatchFailure(`operation ${index} ${what}`, true)
  if (!isRecord(parameter) || parameter.name !== 'operation' || !Array.isArray(parameter.part))
    throw unreadable('is no operation')
  const parts = new Map<unknown, unknown>(
    parameter.part.map((part: unknown) => [isRecord(part) ? part.name : undefined, part]),
  )
  const read = (name: string, member: string): unknown => {
    const part = parts.get(name)
    return isRecord(part) ? part[member] : undefined
  }
  const number = (name: string): number => {
    const value = read(name, 'valueInteger')
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) throw unreadable(`has no ${name}`)
    return value
  }
  const value = (): Value => {
    const part = parts.get('value')
    const parsed = part === undefined ? undefined : parseValue(part)
    if (!parsed) throw unreadable('has no value that can be read')
    return parsed
  }
  const text = read('path', 'valueString')
  if (typeof text === 'string' && text.length > PATCH_PATH_CHARACTERS)
    throw unreadable(`has a path of more than ${PATCH_PATH_CHARACTERS} characters`)
  const path = typeof text === 'string' ? parsePatchPath(text) : undefined
  if (!path) throw unreadable('has no path that is supported here')
  const type = read('type', 'valueCode')
  switch (type) {
    case 'add': {
      const name = toPlain(read('name', 'valueString'))
      if (typeof name !== 'string') throw unreadable('has no name')
      return { type, path, name, value: value() }
    }
    case 'insert':
      return { type, path, index: number('index'), value: value() }
    case 'delete':
      return { type, path }
    case 'replace':
      return { type, path, value: value() }
    case 'move':
      return { type, path, source: number('source'), destination: number('destination') }
    default:
      throw unreadable('has no known type')
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

/** The result of a patch, or why it cannot be applied; `malformed` if it cannot be applied to any resource. */
type Attempted<T> = { readonly value: T } | { readonly failure: string; readonly malformed: boolean }

export type Patched = Attempted<unknown>

/** A patch is applied as a whole: it fails with the first operation that fails. */
export class PatchFailure extends Error {
  readonly malformed: boolean
  constructor(text: string, malformed = false) {
    super(text)
    this.malformed = malformed
  }
}

/** What all operations of a patch may still cost: items that they shift and digits that they compare. */
export interface PatchWork {
  left: number
}

export function openWork(): PatchWork {
  return { left: PATCH_SHIFTS }
}

export function spend(work: PatchWork, cost: number): void {
  work.left -= cost
  if (work.left < 0)
    throw new PatchFailure(`it shifts or compares more than ${PATCH_SHIFTS} items of lists and digits`)
}

/** Inserts an item into a list and shifts those after it. */
export function insertItem(items: unknown[], index: number, item: unknown, work: PatchWork): void {
  spend(work, items.length - index)
  items.splice(index, 0, item)
}

export function removeItem(items: unknown[], index: number, work: PatchWork): void {
  spend(work, items.length - index)
  items.splice(index, 1)
}

/** Turns a thrown `PatchFailure` into a value. */
export function attempt<T>(patch: () => T): Attempted<T> {
  try {
    return { value: patch() }
  } catch (error) {
    if (error instanceof PatchFailure) return { failure: error.message, malformed: error.malformed }
    throw error
  }
}

/** Refuses a value that is nested too deeply for recursive code. */
export function checkDepth(value: unknown, index: number): void {
  if (!isShallow(value, PATCH_DEPTH))
    throw new PatchFailure(`the value of operation ${index} is nested over ${PATCH_DEPTH} levels deep`)
}

function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every(item => isShallow(item, levels - 1))
}
