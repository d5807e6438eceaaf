import { isProblem, isRecord, outcome, readResourceBody } from '../../fhir/index.ts'
import type { Handler } from '../context.ts'
import { toResponse } from '../failure.ts'

/**
 * `$validate`: what is wrong with a resource by the R4 definitions, without the backend: the words of an upstream could
 * not be checked. The status is 200 either way (R4 resource-operation-validate).
 */
export const validateResource: Handler<'operation'> = async (_context, { interaction, body }) => {
  const { type = '' } = interaction
  const resource = readResourceBody(findResource(body), type)
  if (!isProblem(resource)) return { status: 200, body: JSON.stringify(VALID) }
  return resource.problem === 'invalid-resource' ? { ...toResponse(resource), status: 200 } : resource
}

/** The resource itself, or the parameter of that name. */
function findResource(body: unknown): unknown {
  if (!isRecord(body) || body.resourceType !== 'Parameters' || !Array.isArray(body.parameter)) return body
  return body.parameter.find(it => isRecord(it) && it.name === 'resource')?.resource
}

const { resourceType, issue } = outcome('informational', 'The resource is valid')
const VALID = { resourceType, issue: issue.map(it => ({ ...it, severity: 'information' })) }
