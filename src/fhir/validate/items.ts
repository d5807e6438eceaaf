import { isRecord, remember } from '../../core/index.ts'
import { type DateRange, parseDateRange } from '../date-range.ts'
import type { Expression } from './parse-expression.ts'

/** A collection of FHIRPath. A primitive that has only extensions is the object with them. */
export type Items = readonly unknown[]

/** The values of the variables, and the constant parts of expressions that are already evaluated. */
export interface EvaluationScope {
  readonly resource: unknown
  context: unknown
  readonly constants: Map<Expression, Constant>
}

interface Constant {
  readonly base: unknown
  readonly items: Items
  keys: ReadonlySet<string> | undefined
}

export type Test = (item: unknown, scope: EvaluationScope) => boolean | undefined

export function negate(test: Test): Test {
  return (item, scope) => {
    const result = test(item, scope)
    return result === undefined ? undefined : !result
  }
}

/** Three-valued logic: undefined is FHIRPath's empty collection. */
export const LOGIC: Readonly<Record<string, (left: Test, right: Test) => Test>> = {
  and: (left, right) => (item, scope) => {
    const first = left(item, scope)
    if (first === false) return false
    const second = right(item, scope)
    return second === false ? false : first && second
  },
  or: (left, right) => (item, scope) => {
    const first = left(item, scope)
    if (first === true) return true
    const second = right(item, scope)
    return second === true ? true : first === false ? second : undefined
  },
  xor: (left, right) => (item, scope) => {
    const first = left(item, scope)
    const second = right(item, scope)
    return first === undefined || second === undefined ? undefined : first !== second
  },
  implies: (left, right) => (item, scope) => {
    const first = left(item, scope)
    if (first === false) return true
    const second = right(item, scope)
    return second === true ? true : first === true ? second : undefined
  },
}

/** The functions without arguments whose result is always one Boolean. */
export const BOOLEANS: ReadonlySet<string> = new Set(['exists', 'empty', 'not'])

export function isTest(expression: Expression): boolean {
  return (
    (expression.kind === 'call' && BOOLEANS.has(expression.name)) ||
    (expression.kind === 'binary' && Object.hasOwn(LOGIC, expression.operator))
  )
}

export const NOTHING: Items = []

/** Undefined if a collection is empty, or a primitive with a value is compared with one that has only extensions. */
export function areEqual(left: Items, right: Items): boolean | undefined {
  if (left.length === 0 || right.length === 0) return undefined
  if (left.length !== right.length) return false
  if (left.some((it, index) => isRecord(it) !== isRecord(right[index]))) return undefined
  return left.every((it, index) => isSame(it, right[index]))
}

function isSame(left: unknown, right: unknown): boolean {
  return left === right || (typeof left === 'object' && toKey(left) === toKey(right))
}

export function isOfType(value: unknown, type: string): boolean {
  if (isRecord(value)) return value.resourceType === type
  if (type.toLowerCase() === 'boolean') return typeof value === 'boolean'
  return typeof value === (type === 'decimal' ? 'number' : 'string')
}

type Values = Readonly<Record<string, unknown>>

/** The name of an element in JSON, and that of its extensions if it is a primitive: `birthDate` and `_birthDate`. */
interface ElementKey {
  readonly name: string
  readonly companion: string
}

/** One for each type of a choice. */
export interface ElementKeys {
  readonly all: readonly ElementKey[]
  readonly byMember: ReadonlyMap<string, ElementKey>
}

export function createKeys(names: readonly string[]): ElementKeys {
  const all = names.map(name => ({ name, companion: `_${name}` }))
  return { all, byMember: new Map(all.flatMap(it => [[it.name, it] as const, [it.companion, it] as const])) }
}

/** A choice may have 50 types: then the members of an object are looked up among them, and not the other way round. */
const FEW_KEYS = 4

/** A primitive that has only extensions exists, too. */
export function hasKey(value: Values, { all, byMember }: ElementKeys): boolean {
  if (all.length <= FEW_KEYS)
    return all.some(({ name, companion }) => value[name] !== undefined || value[companion] !== undefined)
  for (const member of Object.keys(value)) if (byMember.has(member)) return true
  return false
}

export function listChildren(items: Items, keys: ElementKeys): Items {
  const found: unknown[] = []
  for (const item of items) addChildren(found, item, keys)
  return found
}

export function addChildren(found: unknown[], item: unknown, keys: ElementKeys): unknown[] {
  if (!isRecord(item)) return found
  for (const { name, companion } of findKeys(item, keys))
    addValues(found, item[name] ?? item[companion], item[companion])
  return found
}

function findKeys(value: Values, { all, byMember }: ElementKeys): Iterable<ElementKey> {
  if (all.length <= FEW_KEYS) return all
  return new Set(Object.keys(value).flatMap(member => byMember.get(member) ?? []))
}

function addValues(found: unknown[], value: unknown, companion: unknown): void {
  if (value === undefined || value === null) return
  if (!Array.isArray(value)) found.push(value)
  else
    for (const [index, item] of value.entries()) {
      const present = item ?? (Array.isArray(companion) ? companion[index] : undefined)
      if (present !== undefined && present !== null) found.push(present)
    }
}

type TextFunction = (items: Items, args: readonly string[]) => Items

export const FUNCTIONS: ReadonlyMap<string, TextFunction> = new Map<string, TextFunction>([
  ['count', items => [items.length]],
  ['isDistinct', items => [items.length < 2 || new Set(items.map(toKey)).size === items.length]],
  ['hasValue', items => [items.length === 1 && !isRecord(items[0])]],
  ['startsWith', (items, [text = '']) => mapText(items, it => it.startsWith(text))],
  ['contains', (items, [text = '']) => mapText(items, it => it.includes(text))],
  ['matches', (items, [pattern = '']) => mapText(items, it => findPattern(pattern).test(it))],
  [
    'replaceMatches',
    (items, [pattern = '', text = '']) => mapText(items, it => it.replace(findPattern(pattern), text)),
  ],
  ['toString', items => items.map(String)],
  ['toInteger', items => mapText(items, it => (/^[+-]?\d+$/.test(it) ? Number(it) : undefined))],
])

function mapText(items: Items, map: (text: string) => unknown): Items {
  const [item] = items
  if (typeof item !== 'string') return NOTHING
  const result = map(item)
  return result === undefined ? NOTHING : [result]
}

const patterns = new Map<string, RegExp>()

function findPattern(source: string): RegExp {
  return remember(patterns, source, () => new RegExp(source, 's'))
}

export const COMBINE: Readonly<Record<string, (left: Items, right: Items) => Items>> = {
  '|': (left, right) => [...new Map([...left, ...right].map(it => [toKey(it), it])).values()],
  '&': (left, right) => [`${left[0] ?? ''}${right[0] ?? ''}`],
  '+': (left, right) => [Number(left[0] ?? 0) + Number(right[0] ?? 0)],
  '<=': (left, right) => compare(left, right, (a, b) => a.low <= b.high),
  '>=': (left, right) => compare(left, right, (a, b) => a.high >= b.low),
  '<': (left, right) => compare(left, right, (a, b) => a.low < b.high),
  '>': (left, right) => compare(left, right, (a, b) => a.high > b.low),
}

/** A date is compared as the range it covers: `2020-05-04` is not later than `2020`. */
function compare(left: Items, right: Items, holds: (left: DateRange, right: DateRange) => boolean): Items {
  const first = toRange(left[0])
  const second = toRange(right[0])
  if (!first || !second) return NOTHING
  return [getUnit(left[0]) !== getUnit(right[0]) || holds(first, second)]
}

function toRange(value: unknown): DateRange | undefined {
  if (isRecord(value)) return toRange(value.value)
  if (typeof value === 'number') return { low: value, high: value }
  return typeof value === 'string' ? parseDateRange(value) : undefined
}

function getUnit(value: unknown): unknown {
  return isRecord(value) ? (value.code ?? value.unit) : undefined
}

export function toBoolean(items: Items): boolean | undefined {
  const [item] = items
  return item === undefined ? undefined : item !== false
}

/** A text that is equal for equal values. */
export function toKey(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toKey).join()}]`
  if (!isRecord(value)) return JSON.stringify(value)
  return `{${Object.keys(value)
    .sort()
    .map(key => `${JSON.stringify(key)}:${toKey(value[key])}`)
    .join()}}`
}

export function listMembers(item: unknown): Items {
  return isRecord(item) ? Object.values(item).flat() : NOTHING
}

export function listDescendants(items: Items): Items {
  const found: unknown[] = []
  const pending = [...items]
  for (let item = pending.pop(); item !== undefined; item = pending.pop())
    for (const member of listMembers(item)) {
      found.push(member)
      pending.push(member)
    }
  return found
}
