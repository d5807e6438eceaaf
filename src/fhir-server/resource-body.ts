import { type Resource, validate } from '../fhir/index.ts'
import { isProblem, type Problem } from './problem.ts'

/** The body of a write as a valid resource of the type that the address names, or what is wrong with it. */
export function resourceBody(body: unknown, type: string): Resource | Problem {
  const resource = resourceOfType(body, type)
  if (isProblem(resource)) return resource
  const faults = validate(resource)
  return faults.length > 0 ? { problem: 'invalid-resource', faults } : resource
}

/** The same for an address with an id, which the body must repeat (R4 http.html#update). */
export function resourceBodyWithId(body: unknown, type: string, id: string): Resource | Problem {
  const resource = resourceOfType(body, type)
  if (isProblem(resource)) return resource
  if (resource.id !== id)
    return {
      problem: 'contradiction',
      text: `Cannot update ${type}/${id}: the id in the body is not that of the address`,
    }
  return resourceBody(body, type)
}

function resourceOfType(body: unknown, type: string): Resource | Problem {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return { problem: 'malformed-body', text: `Cannot read body: expected a ${type} resource` }
  const { resourceType } = body as { resourceType?: unknown }
  if (resourceType !== type)
    return { problem: 'contradiction', text: `Cannot accept body: expected a resource of type ${type}` }
  return body as Resource
}
