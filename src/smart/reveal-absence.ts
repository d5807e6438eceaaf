import type { AccessFilter } from './access-filter.ts'

/**
 * Whether a caller may be told that a resource is absent. Refused and absent are one answer to a caller whose reach is
 * limited, so that nobody learns of a resource that it exists; but the grant itself may name the id (the patient of the
 * token, the user's own resource), or not be limited at all.
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
