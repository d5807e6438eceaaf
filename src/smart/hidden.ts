import {
  type CurrentVersion,
  describeStaleness,
  type FhirProblem,
  fail,
  isProblem,
  type Permission,
  type Preconditions,
  type Resource,
  readsStored,
} from '../fhir/index.ts'
import type { Access, AccessFilter } from './access-filter.ts'

/** Absent resources and those outside the access fail in the same way, unless the caller may know that one is absent. */
export function failHidden(access: Access, permission: Permission, type: string, id: string): FhirProblem {
  return mayRevealAbsence(access.filterFor(type, permission), type, id)
    ? fail({ problem: 'absent', type, id })
    : fail({ problem: 'outside-access' })
}

/**
 * Fails if a precondition of an update does. If the id was never used, that would reveal it: a caller who may not know it
 * gets the failure of a resource outside the access.
 */
export function findUpdateConflict(
  access: Access,
  { type, id }: { readonly type: string; readonly id: string },
  before: CurrentVersion | 'deleted' | 'absent',
  preconditions: Preconditions,
): FhirProblem | undefined {
  const stale = describeStaleness(typeof before === 'object' ? before : undefined, preconditions)
  if (!stale || before !== 'absent' || mayRevealAbsence(access.filterFor(type, 'u'), type, id)) return stale
  return fail({ problem: 'outside-access' })
}

/**
 * Whether a caller may know that a resource is absent. A limited caller gets the same response for refused and absent
 * resources, unless the grant itself names the id (the patient of the token, the user's own resource).
 */
export function mayRevealAbsence(filter: AccessFilter, type: string, id: string): boolean {
  if (filter === 'everything') return true
  return filter.some(
    ({ id: own, patient, query }) =>
      !query &&
      (own ?? id) === id &&
      (patient === undefined ? own === id : type === 'Patient' && patient === id),
  )
}

/**
 * Fails if a patch would reveal content. A caller who may update but not read a resource must not learn its content from
 * the patch (`test`, `copy`, `move`, the reason of a failure), nor make it readable: changing the one element that a
 * granular scope filters by would reveal all the others.
 */
export function checkPatch(
  patch: unknown,
  stored: Resource,
  result: Resource | FhirProblem,
  isWithin: (permission: Permission, resource: Resource) => boolean,
): FhirProblem | undefined {
  if (isWithin('r', stored)) return isProblem(result) ? result : undefined
  if (readsStored(patch)) return fail({ problem: 'outside-access' })
  if (isProblem(result)) return result.problem === 'malformed-body' ? result : UNUSABLE
  return isWithin('r', result) || isWithin('s', result) ? fail({ problem: 'outside-access' }) : undefined
}

const UNUSABLE: FhirProblem = fail({ problem: 'unusable-patch', text: 'Cannot apply patch' })
