import { isDeepStrictEqual } from 'node:util'
import { findSearchParameter, listCompartmentParameters, type Params } from '../../../fhir/index.ts'
import type { AccessFilter, Constraint } from '../../../smart/index.ts'
import { LIMIT_VALUES_SENT } from '../limits.ts'

/** How a search of one type is sent, so that the upstream looks no further than it has to. */
export interface Narrowed {
  /** Below the base. */
  readonly path: string
  /** Beside those of the caller: repeated parameters all hold (R4 search.html#combining). */
  readonly params: Params
  /** Whether that is all of the limit, so that the upstream finds nothing else. */
  readonly isExact: boolean
}

export type Narrowing = 'compartment' | 'parameter'

// Not in the R4 CompartmentDefinition, or there with other parameters (PATIENT-2).
const BY_PARAMETER: ReadonlySet<string> = new Set(['Patient', 'Binary', 'Device', 'Group', 'Task'])

/**
 * Narrows a search to a reach as far as search parameters can say it. It may still find too much: several limits have
 * only their patients in common, and an upstream may not know a parameter. Every entry is judged when it comes back.
 */
export function narrow(
  type: string,
  filter: AccessFilter,
  narrowing: Narrowing,
  compartment: string | undefined,
): Narrowed {
  const patients = patientsIn(filter)
  const params = filter === 'everything' ? [] : limitParams(type, filter)
  const inPath = narrowing === 'compartment' && !BY_PARAMETER.has(type)
  const [patient, another] = patients ?? []
  const single = another === undefined ? patient : undefined
  const of = inPath ? (compartment ?? single) : undefined
  const ofCompartment = of === undefined && compartment !== undefined ? membership(type, [compartment]) : []
  const isInPath = of !== undefined && of === single
  const ofLimit = patients && !isInPath ? membership(type, patients) : []
  const isLimited = patients ? isInPath || ofLimit.length > 0 : isSent(type, filter)
  return {
    path: of === undefined ? `/${type}` : `/Patient/${of}/${type}`,
    params: [...ofCompartment, ...ofLimit, ...params],
    isExact: isLimited && isOneQuery(filter),
  }
}

/** Whether a reach is everything, or all of one compartment. */
export function isUnlimited(filter: AccessFilter, compartment: string | undefined): boolean {
  return (
    filter === 'everything' ||
    (compartment !== undefined && filter.some(({ patient, query }) => patient === compartment && !query))
  )
}

/** The same where only parameters can be sent (a condition); undefined when they do not say all of it. */
export function buildExactParams(type: string, filter: AccessFilter): Params | undefined {
  if (filter === 'everything') return []
  const [limit, another] = filter
  if (!limit || another || limit.panel || !isOneQuery(filter)) return undefined
  if (limit.patient === undefined) return limitParams(type, filter)
  const ofPatient = membership(type, [limit.patient])
  return ofPatient.length === 0 ? undefined : [...ofPatient, ...limitParams(type, filter)]
}

/** The patients in whose compartments all of a reach is, or undefined when some of it is in none. */
function patientsIn(filter: AccessFilter): readonly string[] | undefined {
  if (filter === 'everything') return undefined
  const patients = filter.map(limit => limit.patient)
  return patients.every(it => it !== undefined) ? [...new Set(patients)] : undefined
}

function limitParams(type: string, limits: readonly Constraint[]): Params {
  const ids = limits.map(limit => limit.id)
  const query = isOneQuery(limits) ? (limits[0]?.query ?? []) : []
  const byId: Params =
    type !== 'Patient' && ids.length > 0 && ids.every(it => it !== undefined) ? [['_id', ids.join(',')]] : []
  return [...byId, ...query]
}

/** Whether all limits have the same parameters, so that they can be sent: not so many that an upstream would refuse them. */
function isOneQuery(filter: AccessFilter): boolean {
  if (filter === 'everything') return true
  const [first] = filter
  const values = first?.query?.reduce((sum, [, value]) => sum + value.split(',').length, 0) ?? 0
  return values <= LIMIT_VALUES_SENT && filter.every(({ query }) => isDeepStrictEqual(query, first?.query))
}

/** Whether limits that are not all to patients are said by their ids and parameters. */
function isSent(type: string, filter: AccessFilter): boolean {
  if (filter === 'everything') return true
  const [limit, another] = filter
  return another ? type !== 'Patient' && filter.every(({ id }) => id !== undefined) : !limit?.panel
}

function membership(type: string, patients: readonly string[]): Params {
  if (patients.length === 0) return []
  if (type === 'Patient') return [['_id', patients.join(',')]]
  const code = membershipParameter(type)
  return code === undefined ? [] : [[code, patients.map(it => `Patient/${it}`).join(',')]]
}

/** `patient` is what every server knows; where there is none, one parameter alone leads to the patient. */
function membershipParameter(type: string): string | undefined {
  const members = listCompartmentParameters(type)
  if (members.length === 0) return undefined
  if (findSearchParameter(type, 'patient')?.type === 'reference') return 'patient'
  return members[0]
}
