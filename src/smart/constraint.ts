import { listCompartmentParameters, type Permission } from '../fhir/index.ts'
import type { AccessFilter, Constraint, Panel } from './access-filter.ts'
import { MOST_SCOPE_PARAMETERS } from './scope.ts'

/** The constraint with further search parameters, which must match too. */
export function narrow(constraint: Constraint, query: NonNullable<Constraint['query']>): Constraint {
  if (query.length === 0) return constraint
  return { ...constraint, query: constraint.query === undefined ? query : [...constraint.query, ...query] }
}

export function isUnrestricted(constraint: Constraint): boolean {
  return (
    constraint.patient === undefined &&
    constraint.panel === undefined &&
    constraint.refersTo === undefined &&
    constraint.query === undefined &&
    constraint.id === undefined
  )
}

/** The filter that any of the constraints allows. A constraint that is narrower than another one is dropped. */
export function uniteConstraints(constraints: readonly Constraint[]): AccessFilter {
  if (constraints.some(isUnrestricted)) return 'everything'
  if (constraints.length < 2) return constraints
  const { getKey, getWiderKeys } = createSubjectKeys()
  // By subject and then by query: the index of the first constraint.
  const firsts = new Map<string, Map<string, number>>()
  for (const [at, constraint] of constraints.entries()) {
    const subject = getKey(constraint)
    const queries = firsts.get(subject) ?? new Map<string, number>()
    firsts.set(subject, queries)
    const query = getQueryKey(constraint.query ?? [])
    if (!queries.has(query)) queries.set(query, at)
  }
  return constraints.filter((constraint, at) => {
    const wider = getWiderKeys(constraint).flatMap(subject => firsts.get(subject) ?? [])
    const implying = getImpliedKeys(constraint.query ?? []).flatMap(query =>
      wider.flatMap(queries => queries.get(query) ?? []),
    )
    // A later constraint that is the same or narrower adds nothing.
    return implying.every(first => first === at)
  })
}

/** Constraints that differ only in their queries: one of the queries must match, and everything else. */
export interface ConstraintGroup {
  readonly subject: Omit<Constraint, 'query'>
  /** Each is a list of search parameters that must all match. */
  readonly queries: readonly NonNullable<Constraint['query']>[]
}

const groups = new WeakMap<readonly Constraint[], readonly ConstraintGroup[]>()

/** Groups constraints that differ only in their queries, so that the rest is checked once per resource. */
export function groupConstraints(constraints: readonly Constraint[]): readonly ConstraintGroup[] {
  const known = groups.get(constraints)
  if (known) return known
  const { getKey } = createSubjectKeys()
  const grouped = [...Map.groupBy(constraints, getKey).values()].map(alike => {
    const { query: _, ...subject }: Constraint = alike[0] ?? {}
    return { subject, queries: alike.map(({ query = [] }) => query) }
  })
  groups.set(constraints, grouped)
  return grouped
}

/** Texts that identify a constraint without its query. */
function createSubjectKeys() {
  const panels = new Map<Panel, number>()
  const known = new Map<string, readonly string[]>()

  function listParts({ patient, panel, id, exclusive, refersTo }: Constraint): readonly unknown[] {
    // Panels are the same only if they are one object.
    if (panel && !panels.has(panel)) panels.set(panel, panels.size)
    return [patient, panel && panels.get(panel), id, exclusive, refersTo]
  }

  return {
    getKey: (constraint: Constraint) => JSON.stringify(listParts(constraint)),
    /** The keys of all constraints that are as wide or wider: each part may be missing. */
    getWiderKeys(constraint: Constraint): readonly string[] {
      const parts = listParts(constraint)
      const key = JSON.stringify(parts)
      const wider = known.get(key) ?? listSubsets(parts).map(some => JSON.stringify(some))
      known.set(key, wider)
      return wider
    },
  }
}

function listSubsets(parts: readonly unknown[]): readonly (readonly unknown[])[] {
  return parts.reduce<readonly (readonly unknown[])[]>(
    (known, part) =>
      known.flatMap(some =>
        part === undefined
          ? [[...some, part]]
          : [
              [...some, part],
              [...some, undefined],
            ],
      ),
    [[]],
  )
}

// Not of one patient: readable and searchable with a `patient/` scope, but never writable.
const SHARED: ReadonlySet<string> = new Set([
  'Practitioner',
  'PractitionerRole',
  'Organization',
  'Location',
  'Medication',
  'HealthcareService',
  // Conformance and terminology: definitions, which refer to no patient. An ImplementationGuide may (its examples).
  'CapabilityStatement',
  'CodeSystem',
  'CompartmentDefinition',
  'ConceptMap',
  'GraphDefinition',
  'MessageDefinition',
  'NamingSystem',
  'OperationDefinition',
  'Questionnaire',
  'SearchParameter',
  'StructureDefinition',
  'StructureMap',
  'TerminologyCapabilities',
  'ValueSet',
])

/** The constraint of a `patient/` scope without its query; undefined if it gives no access to the type. */
export function findPatientConstraint(
  patient: string,
  type: string,
  permission: Permission,
): Constraint | undefined {
  const reading = permission === 'r' || permission === 's'
  if (SHARED.has(type)) return reading ? {} : undefined
  // A new Patient is in no compartment; `patient/Patient.c` may create one nevertheless (WRITE-3).
  if (type === 'Patient' && permission === 'c') return { refersTo: patient }
  if (!hasCompartment(type)) return undefined
  return reading ? { patient } : { patient, exclusive: true }
}

/** Whether resources of a type can be in a patient's compartment at all. */
export function hasCompartment(type: string): boolean {
  // A Patient is in its own, a Binary in that of its `securityContext`, without a search parameter for it.
  return type === 'Patient' || type === 'Binary' || listCompartmentParameters(type).length > 0
}

type Query = readonly (readonly [name: string, value: string])[]

interface Keys {
  readonly own: string
  readonly implied: readonly string[]
}

// A query never changes, and that of a scope is needed for many types.
const known = new WeakMap<Query, Keys>()

/** A text that is the same for queries with the same search parameters. */
export function getQueryKey(query: Query): string {
  return getKeys(query).own
}

/**
 * The keys of every query that this one implies: one for each subset of its search parameters, including all of them. A
 * wider constraint is thus found by lookup instead of by comparison with all others. A query that is longer than that of
 * any scope implies only itself.
 */
export function getImpliedKeys(query: Query): readonly string[] {
  return getKeys(query).implied
}

function getKeys(query: Query): Keys {
  const found = known.get(query)
  if (found) return found
  const items = [...new Set(query.map(pair => JSON.stringify(pair)))].sort()
  const own = items.join()
  const keys = { own, implied: items.length > MOST_SCOPE_PARAMETERS ? [own] : joinSubsets(items) }
  known.set(query, keys)
  return keys
}

function joinSubsets(items: readonly string[]): readonly string[] {
  return items
    .reduce<readonly (readonly string[])[]>(
      (known, item) => known.flatMap(some => [some, [...some, item]]),
      [[]],
    )
    .map(some => some.join())
}
