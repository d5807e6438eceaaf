import { toPlain } from './exact-json.ts'
import { fail } from './failure.ts'
import { type FhirProblem, isProblem } from './problem.ts'
import type { ExactResource } from './r4.ts'
import { validate } from './validate/index.ts'

/** The body of a write as a valid resource of the type that the address names, or what is wrong with it. */
export function readResourceBody(body: unknown, type: string): ExactResource | FhirProblem {
  const resource = resourceOfType(body, type)
  if (isProblem(resource)) return resource
  const faults = validate(toPlain(resource))
  return faults.length > 0 ? fail({ problem: 'invalid-resource', faults }) : resource
}

/** The same for an address with an id, which the body must repeat (R4 http.html#update). */
export function readResourceBodyWithId(body: unknown, type: string, id: string): ExactResource | FhirProblem {
  const resource = resourceOfType(body, type)
  if (isProblem(resource)) return resource
  if (resource.id !== id)
    return fail({
      problem: 'contradiction',
      text: `Cannot update ${type}/${id}: the id in the body is not that of the address`,
    })
  return readResourceBody(body, type)
}

function resourceOfType(body: unknown, type: string): ExactResource | FhirProblem {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return fail({ problem: 'malformed-body', text: `Cannot read body: expected a ${type} resource` })
  const { resourceType } = body as { resourceType?: unknown }
  if (resourceType !== type)
    return fail({ problem: 'contradiction', text: `Cannot accept body: expected a resource of type ${type}` })
  return body as ExactResource
}
