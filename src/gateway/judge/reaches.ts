import { type Access, isWithin, type Limit } from '../../consent/index.ts'
import { isRecord, namesOtherPatient, type Resource } from '../../fhir/index.ts'
import type { Letter } from '../../scope/index.ts'
import { KEPT_ELSEWHERE } from './kept-elsewhere.ts'

/**
 * Whether content from the upstream may be shown, or content be sent to it. What a resource contains is part of it, and
 * so judged with it: of a limit to one patient, nothing that it contains may be about another.
 */
export function reaches(access: Access, letter: Letter, resource: Resource, baseUrl: string): boolean {
  if (KEPT_ELSEWHERE.has(resource.resourceType)) return false
  const reach = access.reach(resource.resourceType, letter)
  if (reach === 'everything') return true
  return reach.some(
    limit => isWithin(resource, [limit], baseUrl) && containsNoOther(resource, limit, baseUrl),
  )
}

function containsNoOther({ contained }: Resource, { patient }: Limit, baseUrl: string): boolean {
  if (patient === undefined || contained === undefined) return true
  return (
    Array.isArray(contained) &&
    contained.every(it => isResource(it) && !namesOtherPatient(it, patient, baseUrl))
  )
}

export function isResource(value: unknown): value is Resource {
  return isRecord(value) && typeof value.resourceType === 'string'
}
