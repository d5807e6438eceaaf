import { isRecord } from '../../core/index.ts'
import { type Element, findStructure, isResourceType, listJsonKeys } from '../definitions.ts'
import { isConstant, usesContext } from './constant.ts'
import {
  addChildren,
  areEqual,
  BOOLEANS,
  COMBINE,
  createKeys,
  type ElementKeys,
  type EvaluationScope,
  FUNCTIONS,
  hasKey,
  type Items,
  isOfType,
  isTest,
  LOGIC,
  listChildren,
  listDescendants,
  listMembers,
  NOTHING,
  negate,
  type Test,
  toBoolean,
  toKey,
} from './items.ts'
import { type Expression, parseExpression } from './parse-expression.ts'

type Evaluate = (item: unknown, scope: EvaluationScope) => Items

/** An evaluation, and the structure of its items if it is known. */
interface Compiled {
  readonly items: Evaluate
  readonly type: string | undefined
}

interface Types {
  readonly item: string | undefined
  readonly context: string | undefined
}

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

function compileEquality(left: Expression, right: Expression, types: Types): Test {
  if (isTest(left) && isTest(right)) {
    const first = compileTest(left, types)
    const second = compileTest(right, types)
    return (item, scope) => first(item, scope) === second(item, scope)
  }
  const first = compile(left, types).items
  const second = compile(right, types).items
  return (item, scope) => areEqual(first(item, scope), second(item, scope))
}

function compileIs(left: Expression, right: Expression, types: Types): Test {
  const { items } = compile(left, types)
  const type = right.kind === 'child' ? right.name : ''
  return (item, scope) => {
    const found = items(item, scope)
    return found.length === 0 ? undefined : isOfType(found[0], type)
  }
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
): (item: unknown, scope: EvaluationScope) => ReadonlySet<string> {
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
  return isConstant(expression) && expression.kind !== 'variable' && expression.kind !== 'literal'
    ? { ...compiled, items: evaluateOnce(expression, compiled.items) }
    : compiled
}

function evaluateOnce(expression: Expression, items: Evaluate): Evaluate {
  const readsContext = usesContext(expression)
  return (item, scope) => {
    const base = readsContext ? scope.context : scope.resource
    const known = scope.constants.get(expression)
    if (known && known.base === base) return known.items
    const found = items(item, scope)
    scope.constants.set(expression, { base, items: found, keys: undefined })
    return found
  }
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
  if (of.kind === 'this') return { items: item => addChildren([], item, keys), type: known }
  return { items: (item, scope) => listChildren(items(item, scope), keys), type: known }
}

function findElement(name: string, type: string | undefined): Element | undefined {
  if (type === undefined) return undefined
  const element = findStructure(type)?.elements.get(name)
  if (!element && type !== 'Resource') throw new Error(`Cannot compile ${name}: ${type} has no such element`)
  return element
}

function listKeys(name: string, type: string | undefined): ElementKeys {
  const element = findElement(name, type)
  return createKeys(element ? listJsonKeys(element) : [name])
}

type Call = Extract<Expression, { readonly kind: 'call' }>

function compileCall(call: Call, types: Types): Compiled {
  const { name, args } = call
  if (BOOLEANS.has(name)) return fromTest(compileTest(call, types))
  const of = compile(call.of, types)
  const special = CALLS[name]
  if (special) return special(of, call, types)
  const evaluate = FUNCTIONS.get(name)
  if (!evaluate) throw new Error(`Cannot compile ${name}()`)
  const texts = args.map(it => compile(it, types).items)
  const read = (item: unknown, scope: EvaluationScope) => texts.map(it => String(it(item, scope)[0] ?? ''))
  return { items: (item, scope) => evaluate(of.items(item, scope), read(item, scope)), type: undefined }
}

/** The functions whose arguments are expressions, or whose result has a structure. */
const CALLS: Readonly<Record<string, (of: Compiled, call: Call, types: Types) => Compiled>> = {
  where: (of, call, types) => {
    const test = compileTest(getArgument(call), { ...types, item: of.type })
    return mapItems(of, (items, _item, scope) => items.filter(it => test(it, scope) === true))
  },
  all: (of, call, types) => {
    const test = compileTest(getArgument(call), { ...types, item: of.type })
    return fromTest((item, scope) => of.items(item, scope).every(it => test(it, scope) === true))
  },
  select: (of, call, types) => {
    const inner = compile(getArgument(call), { ...types, item: of.type })
    return {
      ...mapItems(of, (items, _item, scope) => items.flatMap(it => inner.items(it, scope))),
      type: inner.type,
    }
  },
  first: of => mapItems(of, items => items.slice(0, 1)),
  tail: of => mapItems(of, items => items.slice(1)),
  trace: of => of,
  children: of => ({ ...mapItems(of, items => items.flatMap(listMembers)), type: undefined }),
  descendants: of => ({ ...mapItems(of, listDescendants), type: undefined }),
  combine: (of, call, types) => {
    const other = compile(getArgument(call), types).items
    return mapItems({ ...of, type: undefined }, (items, item, scope) => [...items, ...other(item, scope)])
  },
  intersect: (of, call, types) => {
    const keys = compileKeys(getArgument(call), types)
    return mapItems(of, (items, item, scope) => {
      const known = keys(item, scope)
      return items.filter(it => known.has(toKey(it)))
    })
  },
  iif: (_of, call, types) => {
    const criterion = compileTest(getArgument(call), types)
    const [yes, no] = call.args.slice(1).map(it => compile(it, types).items)
    return {
      items: (item, scope) => (criterion(item, scope) ? yes : no)?.(item, scope) ?? NOTHING,
      type: undefined,
    }
  },
  is: (_of, call, types) => fromTest(compileIs(call.of, getArgument(call), types)),
}

function mapItems(
  of: Compiled,
  map: (items: Items, item: unknown, scope: EvaluationScope) => Items,
): Compiled {
  return { ...of, items: (item, scope) => map(of.items(item, scope), item, scope) }
}

function getArgument({ name, args }: Call): Expression {
  const [argument] = args
  if (!argument) throw new Error(`Cannot compile ${name}() without an argument`)
  return argument
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
  const first = compile(left, types)
  const second = compile(right, types)
  const type = first.type === second.type ? first.type : undefined
  return { items: (item, scope) => combine(first.items(item, scope), second.items(item, scope)), type }
}
