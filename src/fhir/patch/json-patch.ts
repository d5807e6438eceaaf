import { isFailure, isRecord, mapOrFail } from '../../core/index.ts'
import { PATCH_COPIED_CHARACTERS, PATCH_OPERATIONS, PATCH_PATH_CHARACTERS } from '../limits.ts'
import { failFor } from '../reasons/reasons.ts'
import { cloneJson } from '../resource.ts'
import type { Work } from '../work.ts'
import {
  checkDepth,
  checkWork,
  countElements,
  insertItem,
  isSameValue,
  openWork,
  type Patched,
  type PatchProblem,
  type PatchWork,
  removeItem,
} from './operations.ts'

const OPERATIONS = ['add', 'remove', 'replace', 'move', 'copy', 'test'] as const

interface Operation {
  readonly op: (typeof OPERATIONS)[number]
  readonly path: readonly string[]
  readonly from: readonly string[]
  readonly value: unknown
}

/** The patched document, and what the operations have cost. */
interface Patching {
  document: unknown
  /** The characters that were copied. */
  copied: number
  readonly work: PatchWork
}

/** The elements that an operation of a JSON Patch counts as. */
const ELEMENTS_OF_OPERATION = 20

/** Applies a JSON Patch (RFC 6902) to a copy of a JSON value. */
export function applyJsonPatch(document: unknown, patch: unknown, work: Work): Patched {
  if (!Array.isArray(patch)) return failFor('patch-not-an-array')
  if (patch.length > PATCH_OPERATIONS) return failFor('patch-operations-too-many', { most: PATCH_OPERATIONS })
  const operations = mapOrFail(patch, parseOperation)
  if (isFailure(operations)) return operations
  const patching = { document: cloneJson(document), copied: 0, work: openWork(work) }
  const excess = countElements(patching.work, operations.length * ELEMENTS_OF_OPERATION)
  if (excess) return excess
  for (const operation of operations) {
    const failure = apply(patching, operation)
    if (failure) return failure
  }
  return { value: patching.document }
}

/** Whether a patch reads stored data: `test` reveals whether a value is equal, `copy` and `move` put it elsewhere. */
export function findJsonPatchReads(patch: unknown): boolean {
  return Array.isArray(patch) && patch.some(step => isRecord(step) && READING.has(step.op))
}

const READING: ReadonlySet<unknown> = new Set(['test', 'copy', 'move'])

function parseOperation(candidate: unknown, index: number): Operation | PatchProblem {
  const { op, path, from, value } = Object(candidate) as Readonly<Record<string, unknown>>
  const known = OPERATIONS.find(it => it === op)
  if (!known) return failFor('patch-op-unknown', { index })
  if ((known === 'add' || known === 'replace' || known === 'test') && value === undefined)
    return failFor('patch-part-missing', { index, part: 'value' })
  const tooDeep = checkDepth(value, index)
  if (tooDeep) return tooDeep
  const to = parsePointer(path, index)
  if (isFailure(to)) return to
  const source = known === 'move' || known === 'copy' ? parsePointer(from, index) : []
  return isFailure(source) ? source : { op: known, path: to, from: source, value }
}

/** RFC 6901: `/a~1b/0` */
function parsePointer(text: unknown, index: number): readonly string[] | PatchProblem {
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/')) || /~(?![01])/.test(text))
    return failFor('patch-pointer-missing', { index })
  if (text.length > PATCH_PATH_CHARACTERS)
    return failFor('patch-pointer-too-long', { index, most: PATCH_PATH_CHARACTERS })
  return text
    .split('/')
    .slice(1)
    .map(it => it.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function apply(patching: Patching, { op, path, from, value }: Operation): PatchProblem | undefined {
  switch (op) {
    case 'add':
      return add(patching, path, cloneJson(value))
    case 'remove':
      return remove(patching, path)
    case 'replace':
      return replace(patching, path, cloneJson(value))
    case 'copy':
      return copy(patching, path, from)
    case 'move': {
      if (from.length < path.length && from.every((part, at) => path[at] === part))
        return failFor('patch-moves-into-itself')
      const moved = find(patching, from)
      return isFailure(moved) ? moved : (remove(patching, from) ?? add(patching, path, moved.value))
    }
    case 'test': {
      const found = find(patching, path)
      if (isFailure(found)) return found
      const isSame = isSameValue(found.value, value, patching.work)
      return (
        checkWork(patching.work) ?? (isSame ? undefined : failFor('patch-test-failed', { path: show(path) }))
      )
    }
  }
}

function add(patching: Patching, path: readonly string[], value: unknown): PatchProblem | undefined {
  const key = path.at(-1)
  if (key === undefined) return replace(patching, path, value)
  const parent = find(patching, path.slice(0, -1))
  if (isFailure(parent)) return parent
  const { value: container } = parent
  if (Array.isArray(container)) {
    const index = key === '-' ? container.length : readIndex(key)
    return index > container.length ? failAbsent(path) : insertItem(container, index, value, patching.work)
  }
  if (!isRecord(container)) return failFor('patch-container-missing', { path: show(path.slice(0, -1)) })
  setOwn(container, key, value)
  return undefined
}

function remove(patching: Patching, path: readonly string[]): PatchProblem | undefined {
  if (path.length === 0) return failFor('patch-removes-resource')
  const found = find(patching, path)
  if (isFailure(found)) return found
  const { container, key } = found
  if (Array.isArray(container)) return removeItem(container, Number(key), patching.work)
  Reflect.deleteProperty(container, key)
  return undefined
}

function replace(patching: Patching, path: readonly string[], value: unknown): PatchProblem | undefined {
  const found = find(patching, path)
  if (isFailure(found)) return found
  setOwn(found.container, found.key, value)
  return undefined
}

function copy(
  patching: Patching,
  path: readonly string[],
  from: readonly string[],
): PatchProblem | undefined {
  const found = find(patching, from)
  if (isFailure(found)) return found
  patching.copied += JSON.stringify(found.value).length
  return patching.copied > PATCH_COPIED_CHARACTERS
    ? failFor('patch-copies-too-much', { most: PATCH_COPIED_CHARACTERS })
    : add(patching, path, cloneJson(found.value))
}

/** A value in the document. The container of the whole is the patching itself. */
interface Place {
  readonly container: object
  readonly key: string
  readonly value: unknown
}

function find(patching: Patching, path: readonly string[]): Place | PatchProblem {
  let place: Place = { container: patching, key: 'document', value: patching.document }
  for (const key of path) {
    const { value: container } = place
    if (typeof container !== 'object' || container === null || !hasValue(container, key))
      return failAbsent(path)
    place = { container, key, value: (container as Readonly<Record<string, unknown>>)[key] }
  }
  return place
}

function hasValue(container: object, key: string): boolean {
  return Array.isArray(container) ? readIndex(key) < container.length : Object.hasOwn(container, key)
}

/** Infinity for a text that is no index. */
function readIndex(key: string): number {
  return /^(?:0|[1-9]\d{0,8})$/.test(key) ? Number(key) : Number.POSITIVE_INFINITY
}

// An assignment to `__proto__` would not make a member of that name.
function setOwn(container: object, key: string, value: unknown): void {
  Object.defineProperty(container, key, { value, enumerable: true, configurable: true, writable: true })
}

function failAbsent(path: readonly string[]): PatchProblem {
  return failFor('patch-target-missing', { path: show(path) })
}

const MAX_SHOWN = 200

function show(path: readonly string[]): string {
  const text = `/${path.join('/')}`
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}
