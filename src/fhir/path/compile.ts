import type { SearchParameter } from '../r4.ts'
import { type Element, findStructure, keyOf } from '../structure.ts'
import { type Path, parsePath, type Step } from './parse.ts'

/** How to get from a resource to the values of one type that a search expression means. */
export interface CompiledPath {
  readonly moves: readonly Move[]
  /** Data type of the values; `Resource` for a resource that is held in place. */
  readonly type: string
  /** The required value set of the last element, for the system of a bare code. */
  readonly binding: string | undefined
}

/** Choices are resolved: a key is as it stands in JSON. */
export type Move =
  | { readonly kind: 'key'; readonly key: string }
  | Extract<Step, { readonly kind: 'index' | 'equals' | 'refers' }>
  | { readonly kind: 'present'; readonly keys: readonly string[] }

interface Trail extends CompiledPath {
  /** A choice element whose type is not said yet. */
  readonly pending: Element | undefined
}

const compiled = new WeakMap<SearchParameter, readonly CompiledPath[]>()

/** The paths of a search parameter of a resource type; compiled once. */
export function pathsOf(type: string, parameter: SearchParameter): readonly CompiledPath[] {
  const found = compiled.get(parameter)
  if (found !== undefined) return found
  const paths = compilePath(type, parameter.expression)
  if (paths === undefined) throw new Error(`Cannot compile search parameter ${type}.${parameter.code}`)
  compiled.set(parameter, paths)
  return paths
}

/** Undefined when the expression is outside the language, or names an element that the type does not have. */
export function compilePath(type: string, expression: string): readonly CompiledPath[] | undefined {
  const paths = parsePath(expression)?.map(it => follow(type, it))
  return paths?.every(it => it !== undefined) ? paths.flat() : undefined
}

function follow(type: string, path: Path): readonly CompiledPath[] | undefined {
  let trails: readonly Trail[] = [{ moves: [], type, binding: undefined, pending: undefined }]
  for (const step of path.steps) {
    trails = trails.flatMap(it => advance(it, step))
    if (trails.length === 0) return undefined
  }
  return trails.flatMap(settle).map(({ moves, type: last, binding }) => ({ moves, type: last, binding }))
}

function advance(trail: Trail, step: Step): readonly Trail[] {
  switch (step.kind) {
    case 'element':
      return settle(trail).flatMap(it => enter(it, step.name))
    case 'type':
      return settle(trail).filter(it => it.type === step.type)
    case 'present':
      return [presence(trail)]
    case 'index':
    case 'equals':
    case 'refers':
      return settle(trail).map(it => ({ ...it, moves: [...it.moves, step] }))
  }
}

function enter(trail: Trail, name: string): readonly Trail[] {
  const element = findStructure(trail.type)?.elements.get(name)
  if (element === undefined) return []
  return [{ ...trail, pending: element, binding: element.binding }]
}

function presence(trail: Trail): Trail {
  const keys = trail.pending === undefined ? [] : keysOf(trail.pending)
  return {
    moves: [...trail.moves, { kind: 'present', keys }],
    type: 'boolean',
    binding: undefined,
    pending: undefined,
  }
}

/** Turns a choice that no `ofType` narrowed into one trail per type. */
function settle(trail: Trail): readonly Trail[] {
  const { pending } = trail
  if (pending === undefined) return [trail]
  const keys = keysOf(pending)
  return pending.types.map((type, index) => ({
    moves: [...trail.moves, { kind: 'key', key: keys[index] ?? pending.name }],
    type: type.code,
    binding: pending.binding,
    pending: undefined,
  }))
}

function keysOf(element: Element): readonly string[] {
  return element.types.map(type => keyOf(element, type))
}
