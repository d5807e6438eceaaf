import { findSearchParameter, indexParameter, type Resource } from '../../../fhir/index.ts'

/** The ids of the resources of a type that a resource refers to by a search parameter. */
export function listTargets(
  resource: Resource,
  code: string,
  type: string,
  baseUrl: string,
): readonly string[] {
  return listReferences(resource, code, baseUrl).flatMap(it => (it.type === type ? it.id : []))
}

/** The resources that a resource refers to by a search parameter, as `Type/id`. */
export function listTargetNames(resource: Resource, code: string, baseUrl: string): readonly string[] {
  return listReferences(resource, code, baseUrl).map(it => `${it.type}/${it.id}`)
}

function listReferences(resource: Resource, code: string, baseUrl: string) {
  const parameter = findSearchParameter(resource.resourceType, code)
  const entries = parameter ? indexParameter(resource, parameter, baseUrl) : []
  return entries.flatMap(entry =>
    entry.kind === 'reference' && entry.type !== undefined && entry.id !== undefined
      ? { type: entry.type, id: entry.id }
      : [],
  )
}
