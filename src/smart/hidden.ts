import {
  type CurrentVersion,
  describeStaleness,
  type FhirProblem,
  fail,
  type Permission,
  type Preconditions,
} from '../fhir/index.ts'
import type { Access } from './access-filter.ts'
import { mayRevealAbsence } from './reveal-absence.ts'

/** The response for a resource that does not exist or is outside the grant: the same, unless the caller may learn of its absence. */
export function failHidden(access: Access, permission: Permission, type: string, id: string): FhirProblem {
  return mayRevealAbsence(access.filterFor(type, permission), type, id)
    ? fail({ problem: 'absent', type, id })
    : fail({ problem: 'outside-access' })
}

/**
 * Why an update must not go on: a precondition fails. Where nothing was ever stored under the id, a failed precondition
 * would tell so; a caller who may not know that is answered as for somebody else's resource.
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
