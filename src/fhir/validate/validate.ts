import { isRecord, toRecord } from '../../core/index.ts'
import { isResourceType } from '../definitions.ts'
import { JSON_DEPTH } from '../limits.ts'
import type { ResourceFault } from '../resource.ts'
import {
  addFault,
  addFaultAt,
  type Container,
  checkConcept,
  checkExtensionUrl,
  checkInvariants,
  checkPrimitive,
  checkReference,
  checkSimpleQuantity,
  createScope,
  MAX_DEPTH,
  nothingContained,
  startWalk,
  type ValidationWalk,
} from './checks.ts'
import { getPlan, type Plan, type PlanEntry } from './plan.ts'

type Values = Readonly<Record<string, unknown>>

/** A check that pauses between its steps, so that the caller may do other work. Most values are checked at once. */
type Steps = Generator<undefined, void> | undefined

/** Values that are checked between two pauses. */
const VALUES_PER_STEP = 500

/** A resource of its own: the root, an entry of a Bundle, a parameter. Its levels are counted from the start. */
function* checkResource(walk: ValidationWalk, value: unknown): Generator<undefined, void> {
  const { container, depth } = walk
  walk.container = findContainer(value)
  walk.depth = 0
  if (isTyped(walk, value)) {
    yield* checkTyped(walk, value)
    checkContainedIds(walk, value)
  }
  walk.container = container
  walk.depth = depth
}

/** A resource in `contained`: its `#` references are resolved in its container (R4 references.html#contained). */
function* checkContainedResource(walk: ValidationWalk, value: unknown): Generator<undefined, void> {
  if (!isTyped(walk, value)) return
  yield* checkTyped(walk, value)
  if (value.id === undefined) addFaultAt(walk, 'id', 'required', 'A contained resource needs an id')
  if (value.contained !== undefined)
    addFaultAt(walk, 'contained', 'invariant', 'A contained resource contains no others (dom-2)')
  const meta = toRecord(value.meta)
  if (meta.versionId !== undefined || meta.lastUpdated !== undefined) {
    addFaultAt(walk, 'meta', 'invariant', 'A contained resource has no version of its own (dom-4)')
  }
  if (meta.security !== undefined) {
    addFaultAt(walk, 'meta', 'invariant', 'A contained resource has no security label of its own (dom-5)')
  }
}

function* checkTyped(walk: ValidationWalk, value: TypedValues): Generator<undefined, void> {
  const { scope } = walk
  walk.scope = createScope(value)
  yield* checkObject(walk, value, getPlan(value.resourceType), true)
  walk.scope = scope
}

type TypedValues = Values & { readonly resourceType: string }

function isTyped(walk: ValidationWalk, value: unknown): value is TypedValues {
  if (!isRecord(value)) {
    addFault(walk, 'structure', 'Expected a resource')
    return false
  }
  const type = value.resourceType
  if (typeof type === 'string' && isResourceType(type)) return true
  if (type === undefined) addFaultAt(walk, 'resourceType', 'required', 'A resource needs a resourceType')
  else addFaultAt(walk, 'resourceType', 'value', 'Expected a resource type of R4')
  return false
}

function findContainer(value: unknown): Container {
  if (!isRecord(value) || !Array.isArray(value.contained)) return nothingContained
  const contained = value.contained.filter(isRecord)
  const types = contained.flatMap(({ id, resourceType }) =>
    typeof id === 'string' ? [[id, resourceType] as const] : [],
  )
  return { types: new Map(types), referred: new Set() }
}

function checkContainedIds(walk: ValidationWalk, { contained }: Values): void {
  const { types, referred } = walk.container
  if (
    Array.isArray(contained) &&
    types.size < contained.filter(it => isRecord(it) && it.id !== undefined).length
  )
    addFaultAt(walk, 'contained', 'structure', 'Two contained resources have the same id')
  for (const id of types.keys()) {
    if (!referred.has(id) && !referred.has(''))
      addFaultAt(walk, 'contained', 'invariant', 'A contained resource is not referred to (dom-3)')
  }
}

/** Checks an object against its structure. `typed`: it is a resource and has a `resourceType`. */
function* checkObject(
  walk: ValidationWalk,
  value: Values,
  plan: Plan,
  typed: boolean,
): Generator<undefined, void> {
  if (isTooDeep(walk)) return
  walk.depth++
  const before = walk.checked
  const keys = Object.keys(value)
  if (keys.length === 0) addFault(walk, 'structure', 'Expected an object that is not empty')
  for (const key of keys) {
    if (++walk.checked % VALUES_PER_STEP === 0) yield
    walk.path.push(key)
    const steps = checkKey(walk, value, key, plan, typed)
    if (steps) yield* steps
    const entry = plan.entries.get(key)
    if (entry?.element.choice) checkChoice(walk, value, entry)
    walk.path.pop()
  }
  for (const { element, keys: names } of plan.required) {
    if (!names.some(name => value[name] !== undefined)) {
      addFaultAt(walk, element.choice ? `${element.name}[x]` : element.name, 'required', 'A value is needed')
    }
  }
  const isLarge = walk.checked - before > VALUES_PER_STEP
  for (const invariant of plan.invariants) {
    checkInvariants(walk, value, [invariant])
    // An invariant may read all values of the object.
    if (isLarge) yield
  }
  walk.depth--
}

function isTooDeep(walk: ValidationWalk): boolean {
  if (walk.depth < MAX_DEPTH && walk.path.length <= JSON_DEPTH) return false
  addFault(walk, 'structure', `Nested deeper than ${MAX_DEPTH} levels`)
  return true
}

function checkKey(walk: ValidationWalk, value: Values, key: string, plan: Plan, typed: boolean): Steps {
  const entry = plan.entries.get(key)
  if (entry !== undefined) return checkEntry(walk, value, entry)
  if (key.startsWith('_')) return checkUnderscored(walk, value, key, plan)
  if (!(typed && key === 'resourceType')) addFault(walk, 'structure', 'Unknown element')
  return undefined
}

function* checkUnderscored(
  walk: ValidationWalk,
  value: Values,
  key: string,
  plan: Plan,
): Generator<undefined, void> {
  const entry = plan.entries.get(key.slice(1))
  // XHTML is the one primitive that has no id and no extensions.
  if (entry?.primitive === undefined || entry.type.code === 'xhtml') {
    addFault(walk, 'structure', 'Unknown element')
    return
  }
  yield* checkCompanion(walk, value[key], value[entry.key], entry)
  if (entry.element.choice && value[entry.key] === undefined) checkChoice(walk, value, entry)
}

/** A choice has one type; reported at each but the first, in the order of the definition. */
function checkChoice(walk: ValidationWalk, value: Values, { element, rivals }: PlanEntry): void {
  if (rivals.size > 0 && Object.keys(value).some(key => rivals.has(key)))
    addFault(walk, 'structure', `Only one ${element.name}[x] is allowed`)
}

function checkEntry(walk: ValidationWalk, value: Values, entry: PlanEntry): Steps {
  const found = value[entry.key]
  if (entry.repeats) return checkArray(walk, found, value, entry)
  if (!Array.isArray(found)) return checkValue(walk, found, entry)
  addFault(walk, 'structure', 'Expected one value, not an array')
  return undefined
}

function* checkArray(
  walk: ValidationWalk,
  found: unknown,
  value: Values,
  entry: PlanEntry,
): Generator<undefined, void> {
  if (!Array.isArray(found) || found.length === 0) {
    addFault(walk, 'structure', 'Expected an array that is not empty')
    return
  }
  if (found.length > entry.element.max)
    addFault(walk, 'structure', `Expected at most ${entry.element.max} values`)
  const companions = entry.primitive === undefined ? undefined : value[`_${entry.key}`]
  for (let index = 0; index < found.length; index++) {
    // A primitive in an array may be null where only its extensions are known (R4 json.html#primitive).
    if (found[index] === null && Array.isArray(companions) && isRecord(companions[index])) continue
    if (++walk.checked % VALUES_PER_STEP === 0) yield
    walk.path.push(index)
    const steps = checkValue(walk, found[index], entry)
    if (steps) yield* steps
    walk.path.pop()
  }
}

function checkValue(walk: ValidationWalk, value: unknown, entry: PlanEntry): Steps {
  if (entry.primitive !== undefined) checkPrimitive(walk, value, entry)
  else if (entry.type.code === 'Resource') return checkHeld(walk, value, entry)
  else if (isRecord(value)) return checkComplex(walk, value, entry)
  else addFault(walk, 'structure', `Expected an object (${entry.type.code})`)
  return undefined
}

function* checkComplex(walk: ValidationWalk, value: Values, entry: PlanEntry): Generator<undefined, void> {
  const { code, targets, simple } = entry.type
  if (code === 'Reference') checkReference(walk, value, targets)
  if (simple) checkSimpleQuantity(walk, value)
  if (entry.isOutermostExtension) checkExtensionUrl(walk, value)
  if (entry.codes !== undefined) checkConcept(walk, value, entry.codes)
  yield* checkObject(walk, value, getPlan(code), false)
  if (entry.invariants.length > 0) checkInvariants(walk, value, entry.invariants)
}

function checkHeld(walk: ValidationWalk, value: unknown, entry: PlanEntry): Steps {
  return entry.key === 'contained' ? checkContainedResource(walk, value) : checkResource(walk, value)
}

/** `_birthDate`, `_given`: id and extensions of a primitive; in an array at the index of the value, otherwise null. */
function* checkCompanion(
  walk: ValidationWalk,
  companion: unknown,
  value: unknown,
  entry: PlanEntry,
): Generator<undefined, void> {
  if (!entry.repeats) yield* checkElement(walk, companion, value !== undefined)
  else if (!Array.isArray(companion)) addFault(walk, 'structure', 'Expected an array')
  else if (!isAlongside(companion, value))
    addFault(walk, 'structure', `Expected no more items than ${entry.key} has`)
  else yield* checkEach(walk, companion, Array.isArray(value) ? value : undefined)
}

function isAlongside(companion: readonly unknown[], value: unknown): boolean {
  return Array.isArray(value)
    ? value.length >= companion.length && companion.length > 0
    : value === undefined && companion.length > 0
}

function* checkEach(
  walk: ValidationWalk,
  companion: readonly unknown[],
  values: readonly unknown[] | undefined,
): Generator<undefined, void> {
  for (let index = 0; index < companion.length; index++) {
    if (++walk.checked % VALUES_PER_STEP === 0) yield
    if (companion[index] === null && values) continue
    walk.path.push(index)
    yield* checkElement(walk, companion[index], (values?.[index] ?? null) !== null)
    walk.path.pop()
  }
}

function* checkElement(
  walk: ValidationWalk,
  companion: unknown,
  hasValue: boolean,
): Generator<undefined, void> {
  if (!isRecord(companion)) addFault(walk, 'structure', 'Expected an object (Element)')
  else if (!hasValue && companion.extension === undefined && companion.id !== undefined)
    addFault(walk, 'invariant', 'Expected a value or an extension beside the id (ele-1)')
  else yield* checkObject(walk, companion, getPlan('Element'), false)
}

/**
 * The faults of a resource by the R4 definitions (the first hundred): names, JSON types, cardinality, formats, required
 * codes, references, invariants. `warns` adds R4's recommendations. Profiles and terminology are not checked.
 */
export function validate(resource: unknown, options?: { readonly warns: boolean }): readonly ResourceFault[] {
  const steps = validateInSteps(resource, options)
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

/** Validates a resource with pauses. */
export function* validateInSteps(
  resource: unknown,
  { warns = false } = {},
): Generator<undefined, readonly ResourceFault[]> {
  const type = isRecord(resource) ? resource.resourceType : undefined
  const walk = startWalk(typeof type === 'string' && isResourceType(type) ? type : 'Resource', warns)
  yield* checkResource(walk, resource)
  return walk.faults
}
