import { matches, namesOtherPatient, patientsOf, type Resource } from '../fhir/index.ts'
import type { Limit, Reach } from './reach.ts'

/** Whether a resource is reached. A search parameter that cannot be evaluated on it reaches nothing. */
export function isWithin(resource: Resource, reach: Reach, baseUrl: string): boolean {
  return reach === 'everything' || reach.some(limit => isWithinLimit(resource, limit, baseUrl))
}

function isWithinLimit(resource: Resource, limit: Limit, baseUrl: string): boolean {
  if (limit.id !== undefined && resource.id !== limit.id) return false
  if (limit.patient !== undefined && !patientsOf(resource, baseUrl).has(limit.patient)) return false
  if (limit.sole && limit.patient !== undefined && namesOtherPatient(resource, limit.patient, baseUrl))
    return false
  return (limit.query ?? []).every(([name, value]) => matches(resource, name, value, baseUrl) === true)
}
