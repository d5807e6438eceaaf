import { remember } from '../../core/index.ts'
import { definitions, type Element, findStructure, getKey, type Property } from '../definitions.ts'
import { compileInvariant } from './compile-expression.ts'
import type { EvaluationScope, Test } from './items.ts'
import { type PrimitiveCheck, primitives } from './primitives.ts'

/** A rule of the R4 definitions beyond cardinality and types. `key` is its name in R4. */
export interface Invariant {
  readonly key: string
  readonly text: string
  readonly severity: 'error' | 'warning'
  readonly holds: Test
}

/** The invariants of a structure with those of its base, or of an element (`Organization.address`). */
export function listInvariants(path: string): readonly Invariant[] {
  const rows = Object.hasOwn(definitions.invariants, path) ? definitions.invariants[path] : undefined
  const own = (rows ?? []).map(([key, severity, expression, text]) => ({
    key,
    severity,
    text: `${text.trim().replace(/\.$/, '')} (${key})`,
    holds: compileInvariant(expression, findStructure(path) ? path : undefined),
  }))
  const base = definitions.structures[path]?.base
  return base === undefined ? own : [...listInvariants(base), ...own]
}

/** Whether a value breaks an invariant. An empty result does not: the expression compares values that are absent. */
export function breaksInvariant(invariant: Invariant, value: unknown, scope: EvaluationScope): boolean {
  scope.context = value
  return invariant.holds(value, scope) === false
}

/** A structure, prepared for checking many values of it. */
export interface Plan {
  readonly name: string
  readonly entries: ReadonlyMap<string, PlanEntry>
  readonly required: readonly RequiredElement[]
  readonly invariants: readonly Invariant[]
}

/** The rules for the value of one key. */
export interface PlanEntry extends Property {
  readonly repeats: boolean
  /** Undefined for a type with elements of its own. */
  readonly primitive: PrimitiveCheck | undefined
  readonly codes: RequiredCodes | undefined
  /** Invariants of this element, in addition to the invariants of its type. */
  readonly invariants: readonly Invariant[]
  /** An extension of something else than an extension, whose URL is absolute (R4 extensibility.html). */
  readonly isOutermostExtension: boolean
  /** The keys of a choice whose types come before this one in the definition. */
  readonly rivals: ReadonlySet<string>
}

interface RequiredElement {
  readonly element: Element
  /** A primitive may also be present by its extensions alone (`_status`). */
  readonly keys: readonly string[]
}

/** The codes of a required value set, by themselves and as `system|code`. */
export interface RequiredCodes {
  readonly name: string
  readonly codes: ReadonlySet<string>
  readonly codings: ReadonlySet<string>
}

const plans = new Map<string, Plan>()
const requiredCodes = new Map<string, RequiredCodes>()

export function getPlan(name: string): Plan {
  return remember(plans, name, makePlan)
}

function makePlan(name: string): Plan {
  const structure = findStructure(name)
  if (structure === undefined) throw new Error(`Cannot validate ${name}: R4 has no such type`)
  const required = [...structure.elements.values()].filter(it => it.min > 0)
  return {
    name,
    entries: new Map([...structure.properties].map(([key, property]) => [key, makeEntry(name, property)])),
    required: required.map(element => ({ element, keys: listKeys(element) })),
    invariants: listInvariants(name),
  }
}

function makeEntry(structure: string, property: Property): PlanEntry {
  const { element, type } = property
  const path = `${structure}.${element.name}${element.choice ? '[x]' : ''}`
  return {
    ...property,
    repeats: element.max > 1,
    primitive: primitives.get(type.code),
    codes: element.binding === undefined ? undefined : listCodes(element.binding),
    invariants: findStructure(path) ? [] : listInvariants(path),
    isOutermostExtension: type.code === 'Extension' && structure !== 'Extension',
    rivals: new Set(element.choice ? listRivals(property) : []),
  }
}

function listRivals({ element, type }: Property): readonly string[] {
  return element.types
    .slice(0, element.types.indexOf(type))
    .map(it => getKey(element, it))
    .flatMap(key => [key, `_${key}`])
}

function listKeys(element: Element): readonly string[] {
  return element.types.flatMap(type => {
    const key = getKey(element, type)
    return primitives.has(type.code) ? [key, `_${key}`] : [key]
  })
}

function listCodes(binding: string): RequiredCodes {
  return remember(requiredCodes, binding, name => {
    const groups = definitions.codes[name] ?? []
    return {
      name,
      codes: new Set(groups.flatMap(([, ...codes]) => codes)),
      codings: new Set(groups.flatMap(([system, ...codes]) => codes.map(code => `${system}|${code}`))),
    }
  })
}
