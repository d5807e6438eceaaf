import { parseDateRange } from '../date-range.ts'
import { type Element, findStructure, getKey, isResourceType } from '../definitions.ts'
import { isRecord } from '../resource.ts'
import { type Expression, parseExpression } from './parse-expression.ts'

/** The values of the variables, and the constant parts of expressions that are already evaluated. */
export interface Scope {
  readonly resource: unknown
  context: unknown
  readonly constants: Map<Expression, Constant>
}

interface Constant {
  readonly base: unknown
  readonly items: Items
  keys: ReadonlySet<string> | undefined
}

export type Test = (item: unknown, scope: Scope) => boolean | undefined

type Items = readonly unknown[]
type Evaluate = (item: unknown, scope: Scope) => Items

/** An evaluation, and the structure of its items if it is known. */
interface Compiled {
  readonly items: Evaluate
  readonly type: string | undefined
}

interface Types {
  readonly item: string | undefined
  readonly context: string | undefined
}

const NOTHING: Items = []

/**
 * Compiles an invariant of a type into a function. Time is linear in the size of the resource: parts that depend on a
 * variable only are evaluated once for each resource.
 */
export function compileInvariant(expression: string, type: string | undefined): Test {
  return compileTest(parseExpression(expression), { item: type, context: type })
}

function compileTest(expression: Expression, types: Types): Test {
  if (expression.kind === 'binary') return compileOperator(expression, types)
  if (expression.kind === 'call') {
    const { of, name, args } = expression
    if (name === 'exists' && args.length === 0) return compileExists(of, types)
    if (name === 'empty') return negate(compileExists(of, types))
    if (name === 'not') return negate(compileTest(of, types))
  }
  const { items } = compile(expression, types)
  return (item, scope) => toBoolean(items(item, scope))
}

function negate(test: Test): Test {
  return (item, scope) => {
    const result = test(item, scope)
    return result === undefined ? undefined : !result
  }
}

/** The fast form of `name.exists()`, which most invariants consist of. */
function compileExists(of: Expression, types: Types): Test {
  if (of.kind === 'child' && of.of.kind === 'this') {
    const keys = listKeys(of.name, types.item)
    return item => isRecord(item) && hasKey(item, keys)
  }
  const { items } = compile(of, types)
  return (item, scope) => items(item, scope).length > 0
}

type Operator = Extract<Expression, { readonly kind: 'binary' }>

function compileOperator(expression: Operator, types: Types): Test {
  const { operator, left, right } = expression
  const logic = LOGIC[operator]
  if (logic) return logic(compileTest(left, types), compileTest(right, types))
  if (operator === 'is') return compileIs(left, right, types)
  if (operator === 'contains') return compileMembership(right, left, types)
  if (operator === 'in') return compileMembership(left, right, types)
  if (operator === '=' || operator === '!=') {
    const equal = compileEquality(left, right, types)
    return operator === '=' ? equal : negate(equal)
  }
  const { items } = compile(expression, types)
  return (item, scope) => toBoolean(items(item, scope))
}

/** Three-valued logic: undefined is FHIRPath's empty collection. */
const LOGIC: Readonly<Record<string, (left: Test, right: Test) => Test>> = {
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
    const [first, second] = [left(item, scope), right(item, scope)]
    return first === undefined || second === undefined ? undefined : first !== second
  },
  implies: (left, right) => (item, scope) => {
    const first = left(item, scope)
    if (first === false) return true
    const second = right(item, scope)
    return second === true ? true : first === true ? second : undefined
  },
}

const BOOLEANS: ReadonlySet<string> = new Set(['exists', 'empty', 'not'])

function isTest(expression: Expression): boolean {
  return (
    (expression.kind === 'call' && BOOLEANS.has(expression.name)) ||
    (expression.kind === 'binary' && Object.hasOwn(LOGIC, expression.operator))
  )
}

function compileEquality(left: Expression, right: Expression, types: Types): Test {
  if (isTest(left) && isTest(right)) {
    const [first, second] = [compileTest(left, types), compileTest(right, types)]
    return (item, scope) => first(item, scope) === second(item, scope)
  }
  const [first, second] = [compile(left, types).items, compile(right, types).items]
  return (item, scope) => areEqual(first(item, scope), second(item, scope))
}

/** Undefined if a collection is empty, or a primitive with a value is compared with one that has only extensions. */
function areEqual(left: Items, right: Items): boolean | undefined {
  if (left.length === 0 || right.length === 0) return undefined
  if (left.length !== right.length) return false
  if (left.some((it, index) => isRecord(it) !== isRecord(right[index]))) return undefined
  return left.every((it, index) => it === right[index] || toKey(it) === toKey(right[index]))
}

function compileIs(left: Expression, right: Expression, types: Types): Test {
  const { items } = compile(left, types)
  const type = right.kind === 'child' ? right.name : ''
  return (item, scope) => {
    const found = items(item, scope)
    return found.length === 0 ? undefined : isOfType(found[0], type)
  }
}

function isOfType(value: unknown, type: string): boolean {
  if (isRecord(value)) return value.resourceType === type
  if (type.toLowerCase() === 'boolean') return typeof value === 'boolean'
  return typeof value === (type === 'decimal' ? 'number' : 'string')
}

function compileMembership(member: Expression, collection: Expression, types: Types): Test {
  const { items } = compile(member, types)
  const keys = compileKeys(collection, types)
  return (item, scope) => {
    const found = items(item, scope)
    if (found.length === 0) return undefined
    const known = keys(item, scope)
    return found.every(it => known.has(toKey(it)))
  }
}

/** The keys of a collection; determined once if it depends on a variable only. */
function compileKeys(
  collection: Expression,
  types: Types,
): (item: unknown, scope: Scope) => ReadonlySet<string> {
  const { items } = compile(collection, types)
  if (!isConstant(collection)) return (item, scope) => new Set(items(item, scope).map(toKey))
  return (item, scope) => {
    const values = items(item, scope)
    const constant = scope.constants.get(collection)
    if (!constant) return new Set(values.map(toKey))
    constant.keys ??= new Set(values.map(toKey))
    return constant.keys
  }
}

function compile(expression: Expression, types: Types): Compiled {
  const compiled = compileUncached(expression, types)
  return isConstant(expression) && expression.kind !== 'variable'
    ? { ...compiled, items: evaluateOnce(expression, compiled.items) }
    : compiled
}

function evaluateOnce(expression: Expression, items: Evaluate): Evaluate {
  const base = findVariable(expression) === 'context' ? 'context' : 'resource'
  return (item, scope) => {
    const known = scope.constants.get(expression)
    if (known && known.base === scope[base]) return known.items
    const found = items(item, scope)
    scope.constants.set(expression, { base: scope[base], items: found, keys: undefined })
    return found
  }
}

/** Whether an expression is a path that starts with a variable. */
function isConstant(expression: Expression): boolean {
  return findVariable(expression) !== undefined
}

function findVariable(expression: Expression): string | undefined {
  if (expression.kind === 'variable') return expression.name
  if (expression.kind === 'child') return findVariable(expression.of)
  return expression.kind === 'call' && expression.args.length === 0 ? findVariable(expression.of) : undefined
}

function compileUncached(expression: Expression, types: Types): Compiled {
  switch (expression.kind) {
    case 'literal': {
      const items = [expression.value]
      return { items: () => items, type: undefined }
    }
    case 'this':
      return { items: item => [item], type: types.item }
    case 'variable':
      return compileVariable(expression.name, types)
    case 'child':
      return compileChild(expression.of, expression.name, types)
    case 'call':
      return compileCall(expression, types)
    case 'binary':
      return compileValues(expression, types)
  }
}

function compileVariable(name: string, types: Types): Compiled {
  switch (name) {
    case 'resource':
      return { items: (_item, scope) => [scope.resource], type: getResourceType(types.context) }
    case 'context':
      return { items: (_item, scope) => [scope.context], type: types.context }
    case 'ucum':
      return { items: () => ['http://unitsofmeasure.org'], type: undefined }
    default:
      throw new Error(`Cannot compile %${name}`)
  }
}

function getResourceType(structure: string | undefined): string | undefined {
  const [type = ''] = structure?.split('.') ?? []
  return isResourceType(type) ? type : undefined
}

function compileChild(of: Expression, name: string, types: Types): Compiled {
  // `Appointment.status`: the path starts with the type of the resource.
  if (of.kind === 'this' && name === types.item) return compile(of, types)
  const parent = compile(of, types)
  const element = findElement(name, parent.type)
  const keys = listKeys(name, parent.type)
  const type = element && element.types.length === 1 ? element.types[0]?.code : undefined
  const known = type !== undefined && findStructure(type) ? type : undefined
  const { items } = parent
  if (of.kind === 'this') return { items: item => listChildren([item], keys), type: known }
  return { items: (item, scope) => listChildren(items(item, scope), keys), type: known }
}

function findElement(name: string, type: string | undefined): Element | undefined {
  if (type === undefined) return undefined
  const element = findStructure(type)?.elements.get(name)
  if (!element && type !== 'Resource') throw new Error(`Cannot compile ${name}: ${type} has no such element`)
  return element
}

/** The names of an element in JSON: one for each type of a choice. */
function listKeys(name: string, type: string | undefined): readonly string[] {
  const element = findElement(name, type)
  return element ? element.types.map(it => getKey(element, it)) : [name]
}

type Values = Readonly<Record<string, unknown>>

/** A primitive that has only extensions exists, too. */
function hasKey(value: Values, keys: readonly string[]): boolean {
  for (const key of keys) if (value[key] !== undefined || value[`_${key}`] !== undefined) return true
  return false
}

function listChildren(items: Items, keys: readonly string[]): Items {
  const found: unknown[] = []
  for (const item of items) {
    if (!isRecord(item)) continue
    for (const key of keys) addValues(found, item[key] ?? item[`_${key}`], item[`_${key}`])
  }
  return found
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

type Call = Extract<Expression, { readonly kind: 'call' }>

function compileCall(call: Call, types: Types): Compiled {
  const of = compile(call.of, types)
  const inner = { ...types, item: of.type }
  const [first] = call.args
  switch (call.name) {
    case 'where': {
      const test = compileTest(only(call), inner)
      return {
        ...of,
        items: (item, scope) => of.items(item, scope).filter(it => test(it, scope) === true),
      }
    }
    case 'select': {
      const { items, type } = compile(only(call), inner)
      return { items: (item, scope) => of.items(item, scope).flatMap(it => items(it, scope)), type }
    }
    case 'first':
      return { ...of, items: (item, scope) => of.items(item, scope).slice(0, 1) }
    case 'tail':
      return { ...of, items: (item, scope) => of.items(item, scope).slice(1) }
    case 'trace':
      return of
    case 'children':
      return { items: (item, scope) => of.items(item, scope).flatMap(listMembers), type: undefined }
    case 'descendants':
      return { items: (item, scope) => listDescendants(of.items(item, scope)), type: undefined }
    case 'combine': {
      const { items } = compile(only(call), types)
      return {
        items: (item, scope) => [...of.items(item, scope), ...items(item, scope)],
        type: undefined,
      }
    }
    case 'intersect': {
      const keys = compileKeys(only(call), types)
      return {
        ...of,
        items: (item, scope) => {
          const known = keys(item, scope)
          return of.items(item, scope).filter(it => known.has(toKey(it)))
        },
      }
    }
    case 'iif': {
      const [criterion, then, otherwise] = [compileTest(only(call), types), call.args[1], call.args[2]]
      const yes = then && compile(then, types).items
      const no = otherwise && compile(otherwise, types).items
      return {
        items: (item, scope) => (criterion(item, scope) ? yes : no)?.(item, scope) ?? NOTHING,
        type: undefined,
      }
    }
    case 'as':
    case 'is': {
      const operator = call.name
      return compile({ kind: 'binary', operator, left: call.of, right: only(call) }, types)
    }
    case 'exists':
    case 'empty':
    case 'not':
      return fromTest(compileTest(call, types))
    case 'all': {
      const test = compileTest(only(call), inner)
      return fromTest((item, scope) => of.items(item, scope).every(it => test(it, scope) === true))
    }
    default: {
      const evaluate = FUNCTIONS.get(call.name)
      if (!evaluate) throw new Error(`Cannot compile ${call.name}()`)
      const texts = call.args.map(it => compile(it, types).items)
      return {
        items: (item, scope) =>
          evaluate(
            of.items(item, scope),
            texts.map(it => String(it(item, scope)[0] ?? '')),
          ),
        type: undefined,
      }
    }
  }

  function only({ name }: Call): Expression {
    if (!first) throw new Error(`Cannot compile ${name}() without an argument`)
    return first
  }
}

function fromTest(test: Test): Compiled {
  return {
    items: (item, scope) => {
      const result = test(item, scope)
      return result === undefined ? NOTHING : [result]
    },
    type: undefined,
  }
}

type TextFunction = (items: Items, args: readonly string[]) => Items

const FUNCTIONS: ReadonlyMap<string, TextFunction> = new Map<string, TextFunction>([
  ['count', items => [items.length]],
  ['isDistinct', items => [new Set(items.map(toKey)).size === items.length]],
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
  const known = patterns.get(source) ?? new RegExp(source, 's')
  patterns.set(source, known)
  return known
}

function compileValues(expression: Operator, types: Types): Compiled {
  const { operator, left, right } = expression
  if (operator === 'as') {
    const type = right.kind === 'child' ? right.name : ''
    const { items } = compile(left, types)
    return {
      items: (item, scope) => items(item, scope).filter(it => isOfType(it, type)),
      type: undefined,
    }
  }
  const combine = COMBINE[operator]
  if (!combine) return fromTest(compileOperator(expression, types))
  const [first, second] = [compile(left, types), compile(right, types)]
  const type = first.type === second.type ? first.type : undefined
  return { items: (item, scope) => combine(first.items(item, scope), second.items(item, scope)), type }
}

const COMBINE: Readonly<Record<string, (left: Items, right: Items) => Items>> = {
  '|': (left, right) => [...new Map([...left, ...right].map(it => [toKey(it), it])).values()],
  '&': (left, right) => [`${left[0] ?? ''}${right[0] ?? ''}`],
  '+': (left, right) => [Number(left[0] ?? 0) + Number(right[0] ?? 0)],
  '<=': (left, right) => compare(left, right, (a, b) => a.low <= b.high),
  '>=': (left, right) => compare(left, right, (a, b) => a.high >= b.low),
  '<': (left, right) => compare(left, right, (a, b) => a.low < b.high),
  '>': (left, right) => compare(left, right, (a, b) => a.high > b.low),
}

interface Range {
  readonly low: number
  readonly high: number
}

/** A date is compared as the range it covers: `2020-05-04` is not later than `2020`. */
function compare(left: Items, right: Items, holds: (left: Range, right: Range) => boolean): Items {
  const [first, second] = [toRange(left[0]), toRange(right[0])]
  if (!first || !second) return NOTHING
  return [getUnit(left[0]) !== getUnit(right[0]) || holds(first, second)]
}

function toRange(value: unknown): Range | undefined {
  if (isRecord(value)) return toRange(value.value)
  if (typeof value === 'number') return { low: value, high: value }
  return typeof value === 'string' ? parseDateRange(value) : undefined
}

function getUnit(value: unknown): unknown {
  return isRecord(value) ? (value.code ?? value.unit) : undefined
}

function toBoolean(items: Items): boolean | undefined {
  const [item] = items
  return item === undefined ? undefined : item !== false
}

/** A text that is equal for equal values. */
function toKey(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toKey).join()}]`
  if (!isRecord(value)) return JSON.stringify(value)
  return `{${Object.keys(value)
    .sort()
    .map(key => `${JSON.stringify(key)}:${toKey(value[key])}`)
    .join()}}`
}

function listMembers(item: unknown): Items {
  return isRecord(item) ? Object.values(item).flat() : NOTHING
}

function listDescendants(items: Items): Items {
  const found: unknown[] = []
  const pending = [...items]
  for (let item = pending.pop(); item !== undefined; item = pending.pop())
    for (const member of listMembers(item)) {
      found.push(member)
      pending.push(member)
    }
  return found
}
