import { isRecord, remember } from '../../core/index.ts'
import { definitions, type Element, findStructure, listJsonKeys } from '../definitions.ts'
import type { SearchParameter } from '../resource.ts'

/** The path from a resource to the values of one type that a search expression selects. */
export interface CompiledPath {
  readonly moves: readonly Move[]
  /** Data type of the values; `Resource` for a resource inside another. */
  readonly type: string
  /** The required value set of the last element, for the system of a bare code. */
  readonly binding: string | undefined
}

/** Choices are resolved: a key is a name in JSON. */
export type Move =
  | { readonly kind: 'key'; readonly key: string }
  | Extract<PathStep, { readonly kind: 'index' | 'equals' | 'refers' }>
  | { readonly kind: 'present'; readonly keys: readonly string[] }

interface Trail extends CompiledPath {
  /** A choice element whose type is not yet known. */
  readonly pending: Element | undefined
}

const compiled = new WeakMap<SearchParameter, readonly CompiledPath[]>()

/** The paths of a search parameter of a resource type; compiled once. */
export function findPaths(type: string, parameter: SearchParameter): readonly CompiledPath[] {
  return remember(compiled, parameter, ({ code, expression }) => {
    const paths = compilePath(type, expression)
    if (paths === undefined) throw new Error(`Cannot compile search parameter ${type}.${code}`)
    return paths
  })
}

/** The data type of what a search parameter compares, and its codes if the type has few. */
export function describeValues(
  type: string,
  parameter: SearchParameter,
): { readonly type: string; readonly codes: readonly string[] } {
  const [path] = findPaths(type, parameter)
  const [codes] = definitions.codes[path?.binding ?? ''] ?? []
  return { type: path?.type ?? '', codes: codes?.slice(1) ?? [] }
}

const untargeted = new WeakMap<CompiledPath, CompiledPath>()

/** A path without `where(resolve() is Patient)`. */
export function removeTargets(path: CompiledPath): CompiledPath {
  return remember(untargeted, path, () => ({
    ...path,
    moves: path.moves.filter(move => move.kind !== 'refers'),
  }))
}

/** Undefined if the expression is not supported, or names an element that the type does not have. */
export function compilePath(type: string, expression: string): readonly CompiledPath[] | undefined {
  const paths = parsePath(expression)?.map(it => follow(type, it))
  return paths?.every(it => it !== undefined) ? paths.flat() : undefined
}

function follow(type: string, path: SearchPath): readonly CompiledPath[] | undefined {
  let trails: readonly Trail[] = [{ moves: [], type, binding: undefined, pending: undefined }]
  for (const step of path.steps) {
    trails = trails.flatMap(it => advance(it, step))
    if (trails.length === 0) return undefined
  }
  return trails.flatMap(settle).map(({ moves, type: last, binding }) => ({ moves, type: last, binding }))
}

function advance(trail: Trail, step: PathStep): readonly Trail[] {
  switch (step.kind) {
    case 'element':
      return settle(trail).flatMap(it => enter(it, step.name))
    case 'type':
      return settle(trail).filter(it => it.type === step.type)
    case 'present':
      return [addPresence(trail)]
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

function addPresence(trail: Trail): Trail {
  const keys = trail.pending === undefined ? [] : listJsonKeys(trail.pending)
  return {
    moves: [...trail.moves, { kind: 'present', keys }],
    type: 'boolean',
    binding: undefined,
    pending: undefined,
  }
}

/** Splits a choice without `ofType` into one trail for each type. */
function settle(trail: Trail): readonly Trail[] {
  const { pending } = trail
  if (pending === undefined) return [trail]
  const keys = listJsonKeys(pending)
  return pending.types.map((type, index) => ({
    moves: [...trail.moves, { kind: 'key', key: keys[index] ?? pending.name }],
    type: type.code,
    binding: pending.binding,
    pending: undefined,
  }))
}

/**
 * The subset of FHIRPath that R4 search expressions use. Alternatives are paths; a path is a list of steps that start at
 * the resource.
 */
export interface SearchPath {
  /** The type that the expression starts with, `Resource` for any. */
  readonly root: string
  readonly steps: readonly PathStep[]
}

export type PathStep =
  | { readonly kind: 'element'; readonly name: string }
  /** `ofType(Quantity)`, `as Quantity`: of a choice element, the one of this type. */
  | { readonly kind: 'type'; readonly type: string }
  | { readonly kind: 'index'; readonly index: number }
  /** `where(system='phone')` */
  | { readonly kind: 'equals'; readonly name: string; readonly value: string }
  /** `where(resolve() is Patient)`: a reference to this type. */
  | { readonly kind: 'refers'; readonly type: string }
  /** `exists() and … != false`, of `Patient.deceased`: one boolean. */
  | { readonly kind: 'present' }

const steps: readonly (readonly [RegExp, (found: RegExpExecArray) => PathStep])[] = [
  [/^\.?(?:ofType|as)\((\w+)\)/, found => ({ kind: 'type', type: found[1] ?? '' })],
  [/^\s+as\s+(\w+)/, found => ({ kind: 'type', type: found[1] ?? '' })],
  [/^\[(\d+)\]/, found => ({ kind: 'index', index: Number(found[1]) })],
  [
    /^\.where\((\w+)\s*=\s*'([^']*)'\)/,
    found => ({ kind: 'equals', name: found[1] ?? '', value: found[2] ?? '' }),
  ],
  [/^\.where\(resolve\(\) is (\w+)\)/, found => ({ kind: 'refers', type: found[1] ?? '' })],
  [/^\.(\w+)(?!\()\b/, found => ({ kind: 'element', name: found[1] ?? '' })],
]

const present = /^([\w.]+)\.exists\(\) and \1 != false$/

/** Undefined if the expression is not in this subset of FHIRPath. */
export function parsePath(expression: string): readonly SearchPath[] | undefined {
  const paths = expression.split('|').map(it => parseAlternative(it.trim()))
  return paths.every(it => it !== undefined) ? paths : undefined
}

function parseAlternative(text: string): SearchPath | undefined {
  const subject = present.exec(text)?.[1]
  if (subject === undefined) return parseSteps(removeParentheses(text))
  const path = parseSteps(subject)
  return path === undefined ? undefined : { root: path.root, steps: [...path.steps, { kind: 'present' }] }
}

/** `(Observation.value as CodeableConcept).text`: the parentheses change nothing. */
function removeParentheses(text: string): string {
  return text.replace(/^\(([^|]*?)\)(?=$|\.|\[)/, '$1')
}

function parseSteps(text: string): SearchPath | undefined {
  const root = /^[A-Z]\w*/.exec(text)?.[0]
  if (root === undefined) return undefined
  const found: PathStep[] = []
  let rest = text.slice(root.length)
  while (rest !== '') {
    const step = parseStep(rest)
    if (step === undefined) return undefined
    found.push(step.step)
    rest = rest.slice(step.length)
  }
  return { root, steps: found }
}

function parseStep(text: string): { readonly step: PathStep; readonly length: number } | undefined {
  for (const [pattern, read] of steps) {
    const found = pattern.exec(text)
    if (found !== null) return { step: read(found), length: found[0].length }
  }
  return undefined
}

const nothing: readonly unknown[] = []

/** The values that a path selects, in order, arrays flattened. They are not validated. */
export function evaluatePath(resource: unknown, path: CompiledPath): readonly unknown[] {
  let values: readonly unknown[] = [resource]
  for (const move of path.moves) {
    values = apply(values, move)
    if (values.length === 0) return nothing
  }
  return values
}

function apply(values: readonly unknown[], move: Move): readonly unknown[] {
  switch (move.kind) {
    case 'key':
      return listValuesAt(values, move.key)
    case 'index':
      return values.slice(move.index, move.index + 1)
    case 'equals':
      return values.filter(it => isRecord(it) && it[move.name] === move.value)
    case 'refers':
      return values.filter(it => readTargetType(it) === move.type)
    case 'present':
      return values.map(it => move.keys.some(key => listValuesAt([it], key).some(found => found !== false)))
  }
}

function listValuesAt(values: readonly unknown[], key: string): readonly unknown[] {
  let found: unknown[] | undefined
  for (const value of values) {
    const next = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined
    if (next === undefined || next === null) continue
    found ??= []
    if (!Array.isArray(next)) found.push(next)
    else for (const item of next) if (item !== null) found.push(item)
  }
  return found ?? nothing
}

/** The type of a Reference's target, by its URL or else by `Reference.type`. */
function readTargetType(value: unknown): string | undefined {
  if (!isRecord(value)) return undefined
  const reference = typeof value.reference === 'string' ? value.reference : ''
  const named = /(?:^|\/)([A-Z][A-Za-z]+)\/[A-Za-z0-9\-.]{1,64}(?:\/_history\/[A-Za-z0-9\-.]{1,64})?$/.exec(
    reference,
  )
  return named?.[1] ?? (typeof value.type === 'string' ? value.type : undefined)
}
