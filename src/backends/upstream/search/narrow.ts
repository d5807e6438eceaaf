import { isDeepStrictEqual } from 'node:util'
import {
  findSearchParameter,
  type IncludeRule,
  listCompartmentParameters,
  type Params,
} from '../../../fhir/index.ts'
import type { Access, AccessFilter, Constraint } from '../../../smart/index.ts'
import { hasAccess } from '../access.ts'
import { LIMIT_VALUES_SENT } from '../limits.ts'

/** How a search of one type is sent, so that the upstream finds as few other resources as possible. */
export interface Narrowed {
  readonly path: string
  /** Added to those of the caller: repeated parameters all apply (R4 search.html#combining). */
  readonly params: Params
  /** Whether path and parameters express the whole access filter. */
  readonly isExact: boolean
}

export type Narrowing = 'compartment' | 'parameter'

// Not in the R4 CompartmentDefinition, or there with other parameters (PATIENT-2).
const BY_PARAMETER: ReadonlySet<string> = new Set(['Patient', 'Binary', 'Device', 'Group', 'Task'])

interface NarrowOptions {
  /** The patient of a compartment search. */
  readonly compartment?: string | undefined
  readonly isSendable?: (param: Params[number]) => boolean
  /** The parameter that finds the resources of the filter's patients, where it is not the usual one of the type. */
  readonly memberBy?: string | undefined
}

/**
 * Expresses an access filter by search parameters as far as possible. The upstream may still find too much: several
 * constraints may have only their patients in common. Every entry of the response is checked.
 */
export function narrow(
  type: string,
  filter: AccessFilter,
  narrowing: Narrowing,
  { compartment, isSendable = () => true, memberBy }: NarrowOptions = {},
): Narrowed {
  const patients = listPatients(filter)
  const wanted = filter === 'everything' ? [] : buildConstraintParams(type, filter)
  const params = wanted.filter(isSendable)
  const inPath = narrowing === 'compartment' && !BY_PARAMETER.has(type) && memberBy === undefined
  const [patient, another] = patients ?? []
  const single = another === undefined ? patient : undefined
  const pathPatient = inPath ? (compartment ?? single) : undefined
  const compartmentParams =
    pathPatient === undefined && compartment !== undefined ? buildMembershipParams(type, [compartment]) : []
  const isInPath = pathPatient !== undefined && pathPatient === single
  const patientParams = patients && !isInPath ? buildMembershipParams(type, patients, memberBy) : []
  const isLimited = patients ? isInPath || patientParams.length > 0 : coversFilter(type, filter)
  return {
    path: pathPatient === undefined ? `/${type}` : `/Patient/${pathPatient}/${type}`,
    params: [...compartmentParams, ...patientParams, ...params],
    isExact: isLimited && isOneQuery(filter) && params.length === wanted.length,
  }
}

/** Whether a filter is everything, or a whole compartment. */
export function isUnlimited(filter: AccessFilter, compartment: string | undefined): boolean {
  return (
    filter === 'everything' ||
    (compartment !== undefined && filter.some(({ patient, query }) => patient === compartment && !query))
  )
}

/** An access filter as parameters of a condition; undefined where they do not express all of it. */
export function buildExactParams(type: string, filter: AccessFilter): Params | undefined {
  if (filter === 'everything') return []
  const [first, another] = filter
  if (!first || filter.some(({ panel }) => panel) || !isOneQuery(filter)) return undefined
  const patients = listPatients(filter)
  if (!patients) return another ? undefined : buildConstraintParams(type, filter)
  const patientParams = buildMembershipParams(type, patients)
  return patientParams.length === 0 ? undefined : [...patientParams, ...buildConstraintParams(type, filter)]
}

const DAY = /^(?:[a-z]{2})?\d{4}-\d{2}-\d{2}/

/**
 * Which clauses of a filter any upstream reads like the gateway. Servers differ in dates without a day, in lists and
 * repetitions of dates, in quantities and in modifiers.
 */
export function createSendable(type: string, own: Params): (param: Params[number]) => boolean {
  const names = new Set(own.map(([name]) => name.split(':')[0]))
  return ([name, value]) => {
    if (name.includes(':') || name.includes('.')) return false
    switch (findSearchParameter(type, name)?.type) {
      case 'date':
        return DAY.test(value) && !value.includes(',') && !names.has(name)
      case 'number':
      case 'quantity':
        return false
      default:
        return true
    }
  }
}

/** The patients of a filter; undefined where a constraint names none. */
function listPatients(filter: AccessFilter): readonly string[] | undefined {
  if (filter === 'everything') return undefined
  const patients = filter.map(constraint => constraint.patient)
  return patients.every(it => it !== undefined) ? [...new Set(patients)] : undefined
}

function buildConstraintParams(type: string, constraints: readonly Constraint[]): Params {
  const ids = constraints.map(constraint => constraint.id)
  const query = isOneQuery(constraints) ? (constraints[0]?.query ?? []) : []
  const byId: Params =
    type !== 'Patient' && ids.length > 0 && ids.every(it => it !== undefined) ? [['_id', ids.join(',')]] : []
  return [...byId, ...query]
}

/** Whether all constraints have the same query, and it is short enough to be sent. */
function isOneQuery(filter: AccessFilter): boolean {
  if (filter === 'everything') return true
  const [first] = filter
  const values = first?.query?.reduce((sum, [, value]) => sum + value.split(',').length, 0) ?? 0
  const isFirst = ({ query }: Constraint) => query === first?.query || isDeepStrictEqual(query, first?.query)
  return values <= LIMIT_VALUES_SENT && filter.every(isFirst)
}

/** Whether constraints without patients are expressed by ids and parameters. */
function coversFilter(type: string, filter: AccessFilter): boolean {
  if (filter === 'everything') return true
  const [constraint, another] = filter
  return another ? type !== 'Patient' && filter.every(({ id }) => id !== undefined) : !constraint?.panel
}

export function buildMembershipParams(
  type: string,
  patients: readonly string[],
  code = findMembershipParameter(type),
): Params {
  if (patients.length === 0) return []
  if (type === 'Patient') return [['_id', patients.join(',')]]
  return code === undefined ? [] : [[code, patients.map(it => `Patient/${it}`).join(',')]]
}

/** Every server knows `patient`; types without it have one membership parameter. */
function findMembershipParameter(type: string): string | undefined {
  const members = listCompartmentParameters(type)
  if (members.length === 0) return undefined
  if (findSearchParameter(type, 'patient')?.type === 'reference') return 'patient'
  return members[0]
}

/** The parameters that together find the compartments of a filter's patients; undefined where one search finds all. */
export function listMembershipParameters(
  type: string,
  filter: AccessFilter,
  narrowing: Narrowing,
): readonly string[] | undefined {
  if (filter === 'everything' || filter.some(({ patient, panel }) => patient === undefined && !panel))
    return undefined
  const isInPath =
    narrowing === 'compartment' && !BY_PARAMETER.has(type) && listPatients(filter)?.length === 1
  const usual = findMembershipParameter(type)
  if (isInPath || usual === undefined || type === 'Patient') return undefined
  const others = listCompartmentParameters(type).filter(it => it !== usual)
  return [usual, ...others.filter(it => usual !== 'patient' || it !== 'subject')]
}

/** The includes with targets that the caller may see, each limited to their types; a star is sent as it is. */
export function narrowIncludes(rules: readonly IncludeRule[], access: Access): Params {
  const star: Params = rules.some(rule => rule.isOfStar && hasAccess(access, rule.source, 's'))
    ? [['_revinclude', '*']]
    : []
  const named = rules.filter(rule => !rule.isOfStar)
  const params = named.flatMap(rule =>
    rule.parameters.flatMap(code =>
      rule.direction === 'forward' ? narrowForward(rule, code, access) : narrowReverse(rule, code, access),
    ),
  )
  return [...params, ...star]
}

/** Along a reference a resource is read (`r`). */
function narrowForward(rule: IncludeRule, code: string, access: Access): Params {
  const { source, target } = rule
  const possible = target === undefined ? findSearchParameter(source, code)?.target : [target]
  if (possible === undefined) return [[formatName(rule), `${source}:${code}`]]
  const visible = possible.filter(type => hasAccess(access, type, 'r'))
  if (target === undefined && visible.length === possible.length)
    return [[formatName(rule), `${source}:${code}`]]
  return visible.map(type => [formatName(rule), `${source}:${code}:${type}`] as const)
}

/** Against a reference it is searched (`s`). */
function narrowReverse(rule: IncludeRule, code: string, access: Access): Params {
  const { source, target } = rule
  if (!hasAccess(access, source, 's')) return []
  return [[formatName(rule), target === undefined ? `${source}:${code}` : `${source}:${code}:${target}`]]
}

function formatName({ direction, iterate }: IncludeRule): string {
  const name = direction === 'forward' ? '_include' : '_revinclude'
  return iterate ? `${name}:iterate` : name
}
