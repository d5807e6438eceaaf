import { isSameJson } from '../json.ts'
import { PATCH_COPIED_CHARACTERS, PATCH_OPERATIONS, PATCH_PATH_CHARACTERS } from '../limits.ts'
import { cloneJson, isRecord } from '../resource.ts'
import {
  attempt,
  checkDepth,
  insertItem,
  openWork,
  type Patched,
  PatchFailure,
  type PatchWork,
  removeItem,
  spend,
} from './operations.ts'

const OPERATIONS = ['add', 'remove', 'replace', 'move', 'copy', 'test'] as const

type OperationName = (typeof OPERATIONS)[number]

interface Operation {
  readonly op: OperationName
  readonly path: readonly string[]
  readonly from: readonly string[]
  readonly value: unknown
}

/** Applies a JSON Patch (RFC 6902) to a copy of a JSON value. */
export function applyJsonPatch(document: unknown, patch: unknown): Patched {
  return attempt(() => {
    if (!Array.isArray(patch)) throw new PatchFailure('expected an array of operations', true)
    if (patch.length > PATCH_OPERATIONS)
      throw new PatchFailure(`it has more than ${PATCH_OPERATIONS} operations`, true)
    let value = cloneJson(document)
    const work = openWork()
    let copied = 0
    for (const operation of patch.map(parseOperation)) {
      if (operation.op === 'copy') copied += measureAt(value, operation.from)
      if (copied > PATCH_COPIED_CHARACTERS)
        throw new PatchFailure(`it copies more than ${PATCH_COPIED_CHARACTERS} characters`)
      value = apply(value, operation, work)
    }
    return value
  })
}

/** Whether a patch reads stored data: `test` reveals whether a value is equal, `copy` and `move` put it elsewhere. */
export function findJsonPatchReads(patch: unknown): boolean {
  return Array.isArray(patch) && patch.some(step => isRecord(step) && READING.has(step.op))
}

const READING: ReadonlySet<unknown> = new Set(['test', 'copy', 'move'])

function parseOperation(candidate: unknown, index: number): Operation {
  const { op, path, from, value } = (typeof candidate === 'object' && candidate ? candidate : {}) as Record<
    string,
    unknown
  >
  const known = OPERATIONS.find(it => it === op)
  if (!known) throw new PatchFailure(`operation ${index} has no known op`, true)
  if ((known === 'add' || known === 'replace' || known === 'test') && value === undefined)
    throw new PatchFailure(`operation ${index} has no value`, true)
  checkDepth(value, index)
  const needsFrom = known === 'move' || known === 'copy'
  return {
    op: known,
    path: parsePointer(path, index),
    from: needsFrom ? parsePointer(from, index) : [],
    value,
  }
}

function measureAt(document: unknown, path: readonly string[]): number {
  return JSON.stringify(getAt(document, path)).length
}

/** RFC 6901: `/a~1b/0` */
function parsePointer(text: unknown, index: number): readonly string[] {
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/')) || /~(?![01])/.test(text))
    throw new PatchFailure(`operation ${index} has no JSON Pointer`, true)
  if (text.length > PATCH_PATH_CHARACTERS)
    throw new PatchFailure(
      `the path of operation ${index} has more than ${PATCH_PATH_CHARACTERS} characters`,
      true,
    )
  return text
    .split('/')
    .slice(1)
    .map(it => it.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function apply(document: unknown, { op, path, from, value }: Operation, work: PatchWork): unknown {
  switch (op) {
    case 'add':
      return add(document, path, cloneJson(value), work)
    case 'remove':
      return remove(document, path, work)
    case 'replace':
      return path.length === 0 ? cloneJson(value) : replace(document, path, cloneJson(value))
    case 'copy':
      return add(document, path, cloneJson(getAt(document, from)), work)
    case 'move': {
      if (from.length < path.length && from.every((part, at) => path[at] === part))
        throw new PatchFailure('a value cannot be moved into itself')
      const moved = getAt(document, from)
      return add(remove(document, from, work), path, moved, work)
    }
    case 'test':
      if (!isSameJson(getAt(document, path), value, digits => spend(work, digits)))
        throw new PatchFailure(`test of ${show(path)} failed`)
      return document
  }
}

type Container = unknown[] | Record<string, unknown>

function add(document: unknown, path: readonly string[], value: unknown, work: PatchWork): unknown {
  if (path.length === 0) return value
  const [container, key] = findContainer(document, path)
  if (!Array.isArray(container)) setOwn(container, key, value)
  else {
    const index = key === '-' ? container.length : readIndex(container, key, container.length, path)
    insertItem(container, index, value, work)
  }
  return document
}

function remove(document: unknown, path: readonly string[], work: PatchWork): unknown {
  if (path.length === 0) throw new PatchFailure('the whole resource cannot be removed')
  getAt(document, path)
  const [container, key] = findContainer(document, path)
  if (Array.isArray(container)) removeItem(container, Number(key), work)
  else delete container[key]
  return document
}

function replace(document: unknown, path: readonly string[], value: unknown): unknown {
  getAt(document, path)
  const [container, key] = findContainer(document, path)
  if (Array.isArray(container)) container[Number(key)] = value
  else setOwn(container, key, value)
  return document
}

function findContainer(document: unknown, path: readonly string[]): readonly [Container, string] {
  const container = getAt(document, path.slice(0, -1))
  if (typeof container !== 'object' || container === null)
    throw new PatchFailure(`there is nothing at ${show(path.slice(0, -1))} to go into`)
  return [container as Container, path.at(-1) ?? '']
}

function getAt(document: unknown, path: readonly string[]): unknown {
  let value = document
  for (const key of path) {
    if (Array.isArray(value)) value = value[readIndex(value, key, value.length - 1, path)]
    else if (typeof value === 'object' && value !== null && Object.hasOwn(value, key))
      value = (value as Record<string, unknown>)[key]
    else throw new PatchFailure(`there is nothing at ${show(path)}`)
  }
  return value
}

function readIndex(array: readonly unknown[], key: string, last: number, path: readonly string[]): number {
  const index = /^(?:0|[1-9]\d{0,8})$/.test(key) ? Number(key) : array.length + 1
  if (index > last) throw new PatchFailure(`there is nothing at ${show(path)}`)
  return index
}

// An assignment to `__proto__` would not make a member of that name.
function setOwn(container: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(container, key, { value, enumerable: true, configurable: true, writable: true })
}

const LONGEST_SHOWN = 200

function show(path: readonly string[]): string {
  const text = `/${path.join('/')}`
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text
}
