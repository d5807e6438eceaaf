import { groupBy, remember } from '../core/index.ts'
import {
  listCompartmentParameters,
  type Permission,
  type ResourceReference,
  resourceTypes,
} from '../fhir/index.ts'
import { MAX_SCOPE_PARAMETERS } from './scope.ts'

/** The conditions of one granted scope. A resource must meet all of them. */
export interface Constraint {
  /** The resource is this patient, or in this patient's compartment. */
  readonly patient?: string
  /** The resource belongs to a patient on this panel, or is one: the user's own rights. */
  readonly panel?: Panel
  /** For a write: no compartment reference of the resource names another patient, or one outside the panel (WRITE-2). */
  readonly exclusive?: true
  /** For a new Patient: it refers to no other patient than this one. */
  readonly refersTo?: string
  /** The resource matches all of these search parameters (a granular scope). */
  readonly query?: readonly (readonly [name: string, value: string])[]
  /** The resource has this id (the user's own resource). */
  readonly id?: string
}

/** The part of a resource type that a grant may touch with one permission: everything, or any of the constraints. */
export type AccessFilter = 'everything' | readonly Constraint[]

/** The access filters of a caller, by type and permission. */
export interface Access {
  /** `s` is for searches, whichever permission the settings require for them (`smart.fhir.search-letter`). */
  filterFor(type: string, permission: Permission): AccessFilter
}

/**
 * Which content decides about access to an old version (`smart.fhir.version-access`): its own and that of the current
 * version, both of which must be within the grant, or its own alone.
 */
export type VersionAccess = 'current' | 'version'

/** Access without a caller: an embedded server without access control, and internal work on its data. */
export const fullAccess: Access = { filterFor: () => 'everything' }

/** The access of a caller who may touch nothing. */
export const noAccess: Access = { filterFor: () => [] }

const seeing = new WeakMap<Access, boolean>()

/** Whether a caller may read and search everything, so that no response has to be checked. */
export function seesAll(access: Access): boolean {
  const isWhole = (type: string, permission: Permission) =>
    access.filterFor(type, permission) === 'everything'
  return remember(seeing, access, () => resourceTypes.every(type => isWhole(type, 'r') && isWhole(type, 's')))
}

/** The patients that a policy assigns to a clinician, by any of these. All but `patients` depend on stored data. */
export interface Panel {
  readonly patients: ReadonlySet<string>
  readonly organizations: readonly string[]
  readonly careTeams: readonly string[]
  /** The clinician whose care teams count. */
  readonly member?: ResourceReference
}

/** Whether a panel consists of the patients it names, so that it does not depend on stored data. */
export function isOfNamedOnly({ organizations, careTeams, member }: Panel): boolean {
  return organizations.length === 0 && careTeams.length === 0 && member === undefined
}

/** Whether a patient is on a panel according to stored data. */
export interface PanelMembership {
  includes(panel: Panel, patient: string): boolean
}

/** Finds which of these patients are on the panels. */
export type FindPanelMembership<P> = (
  panels: readonly Panel[],
  patients: ReadonlySet<string>,
) => PanelMembership | P | Promise<PanelMembership | P>

/** The constraint with further search parameters, which must match too. */
export function narrow(constraint: Constraint, query: NonNullable<Constraint['query']>): Constraint {
  if (query.length === 0) return constraint
  return { ...constraint, query: constraint.query === undefined ? query : [...constraint.query, ...query] }
}

export function isUnconditional(constraint: Constraint): boolean {
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
  if (constraints.some(isUnconditional)) return 'everything'
  if (constraints.length < 2) return constraints
  const { getKey, getWiderKeys } = createSubjectKeys()
  // By subject and then by query: the index of the first constraint.
  const firsts = new Map<string, Map<string, number>>()
  for (const [at, constraint] of constraints.entries()) {
    const subject = getKey(constraint)
    const queries = firsts.get(subject) ?? new Map<string, number>()
    firsts.set(subject, queries)
    const query = getQueryKey(constraint.query)
    if (!queries.has(query)) queries.set(query, at)
  }
  return constraints.filter((constraint, at) => {
    const wider = getWiderKeys(constraint).flatMap(subject => firsts.get(subject) ?? [])
    const implying = getImpliedKeys(constraint.query).flatMap(query =>
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
  return remember(groups, constraints, () => {
    const { getKey } = createSubjectKeys()
    return [...groupBy(constraints, getKey).values()].map(alike => {
      const { query: _, ...subject }: Constraint = alike[0] ?? {}
      return { subject, queries: alike.map(({ query = [] }) => query) }
    })
  })
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
      return remember(known, JSON.stringify(parts), () =>
        listSubsets(parts).map(subset => JSON.stringify(subset)),
      )
    },
  }
}

/** The subsets of some parts, in which undefined stands for each part that is left out. */
function listSubsets(parts: readonly unknown[]): readonly (readonly unknown[])[] {
  return parts.reduce<readonly (readonly unknown[])[]>(
    (subsets, part) => {
      const without = subsets.map(subset => [...subset, undefined])
      return part === undefined ? without : [...subsets.map(subset => [...subset, part]), ...without]
    },
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

const NO_CLAUSES: Query = []

// A query never changes, and that of a scope is needed for many types.
const known = new WeakMap<Query, Keys>()

/** A text that is the same for queries with the same search parameters. */
export function getQueryKey(query: Query = NO_CLAUSES): string {
  return getKeys(query).own
}

/**
 * The keys of every query that this one implies: one for each subset of its search parameters, including all of them. A
 * wider constraint is thus found by lookup instead of by comparison with all others. A query that is longer than that of
 * any scope implies only itself.
 */
export function getImpliedKeys(query: Query = NO_CLAUSES): readonly string[] {
  return getKeys(query).implied
}

function getKeys(query: Query): Keys {
  return remember(known, query, () => {
    const items = [...new Set(query.map(pair => JSON.stringify(pair)))].sort()
    const own = items.join()
    return { own, implied: items.length > MAX_SCOPE_PARAMETERS ? [own] : joinSubsets(items) }
  })
}

function joinSubsets(items: readonly string[]): readonly string[] {
  return listSubsets(items).map(subset => subset.filter(item => item !== undefined).join())
}
