import type { Permission, ResourceReference } from '../fhir/index.ts'

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
