/**
 * Judges a resource by the R4 definitions: names, JSON types, cardinality, formats, required codes, references and
 * the rules of `invariants.ts`. It knows no profiles and asks no terminology or other server.
 */
import { isResourceType } from '../definitions.ts'
import type { Fault } from '../r4.ts'
import { isRecord } from '../record.ts'
import { checkResource } from './resources.ts'
import { startWalk } from './walk.ts'

/** Everything that is wrong with a resource (the first hundred faults); empty when it is valid. Never throws on input. */
export function validate(resource: unknown): readonly Fault[] {
  const type = isRecord(resource) ? resource.resourceType : undefined
  const walk = startWalk(typeof type === 'string' && isResourceType(type) ? type : 'Resource')
  checkResource(walk, resource)
  return walk.faults
}
