import {
  type FhirProblem,
  fail,
  isProblem,
  type Permission,
  type Resource,
  readsStored,
} from '../fhir/index.ts'

/**
 * Why a patch is refused to a caller who may update a resource, if so. A caller who may not read the resource must not
 * learn its content from the patch (`test`, `copy`, `move`, the reason of a failure), nor make it readable: a patch of
 * the one element that a granular scope filters by would reveal all the others.
 */
export function checkPatch(
  patch: unknown,
  stored: Resource,
  result: Resource | FhirProblem,
  reaches: (permission: Permission, resource: Resource) => boolean,
): FhirProblem | undefined {
  if (reaches('r', stored)) return isProblem(result) ? result : undefined
  if (readsStored(patch)) return fail({ problem: 'outside-access' })
  if (isProblem(result)) return result.problem === 'malformed-body' ? result : UNUSABLE
  return reaches('r', result) || reaches('s', result) ? fail({ problem: 'outside-access' }) : undefined
}

const UNUSABLE: FhirProblem = fail({ problem: 'unusable-patch', text: 'Cannot apply patch' })
