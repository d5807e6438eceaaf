import type { Permission } from '../fhir/index.ts'
import type { Panel } from './policy/panel.ts'

/** What all hold for a resource that is reached by one granted scope. */
export interface Constraint {
  /** The resource is this patient, or in this patient's compartment. */
  readonly patient?: string
  /** The resource is of a patient on this panel, or is one: the user's own rights. */
  readonly panel?: Panel
  /** For a write: no compartment reference of the resource names another patient, or one outside the panel (WRITE-2). */
  readonly exclusive?: true
  /** Of a new Patient: no reference in it is to a patient other than this one. */
  readonly refersTo?: string
  /** The resource matches all of these search parameters (a granular scope). Each can be evaluated. */
  readonly query?: readonly (readonly [name: string, value: string])[]
  /** The resource has this id (the user's own resource). */
  readonly id?: string
}

/** What a grant reaches of one resource type with one permission: everything, nothing (no limit), or any of the limits. */
export type AccessFilter = 'everything' | readonly Constraint[]

/** What a caller may touch. The embedded FHIR server puts it into its queries; the gateway checks by it. */
export interface Access {
  /** With `s` it is what a search reaches, whichever permission the settings ask for it (`smart.fhir.search-letter`). */
  filterFor(type: string, permission: Permission): AccessFilter
}

/**
 * What an old version is judged by (`smart.fhir.version-access`): its own content and that of the current version, both
 * of which must be within the reach, or its own content alone.
 */
export type VersionAccess = 'current' | 'version'

/** The access of nobody in particular: an embedded server that runs unguarded, and our own work on its data. */
export const fullAccess: Access = { filterFor: () => 'everything' }

/** The access of a caller who may touch nothing. */
export const noAccess: Access = { filterFor: () => [] }
