import {
  type EverythingType,
  fail,
  findEverythingProblem,
  isResourceType,
  type Params,
  readPostedParams,
} from '../../fhir/index.ts'
import { findResource } from '../access/find-resource.ts'
import type { Handler } from '../context.ts'
import { type Failure, isFailure } from '../failure.ts'
import { resumePage } from '../paging.ts'
import { type FhirRequest, getPath, type Operation } from '../request.ts'
import { respondWithPage } from './search.ts'

/** `$everything` of a Patient or an Encounter: its resources and those they refer to, within the access. */
export function createEverything(type: EverythingType): Handler<'operation'> {
  return async (context, original) => {
    const first = addPostedParams(original)
    if (isFailure(first)) return first
    const path = getPath(first.interaction)
    const resumed = resumePage(context, first, path)
    if (isFailure(resumed)) return resumed
    const { request, cursor } = resumed
    const { id = '', params } = request.interaction
    const found = await findResource(context, request, 'r', type, id)
    if (isFailure(found)) return found
    if (found.deleted) return fail({ problem: 'gone', type, id })
    const problem = findEverythingProblem(type, params)
    if (problem) return problem
    const types = findNamedTypes(params)
    if (isFailure(types)) return types
    const page = await context.session.everything(request, { type, id, types }, cursor)
    return isFailure(page) ? page : respondWithPage(context, request, path, page)
  }
}

/** Adds the parameters of the body to those of the URL. */
export function addPostedParams(request: FhirRequest<Operation>): FhirRequest<Operation> | Failure {
  const { interaction, body } = request
  const posted = readPostedParams(body)
  if (isFailure(posted)) return posted
  return { ...request, interaction: { ...interaction, params: [...interaction.params, ...posted] } }
}

/** The types that `_type` names. */
export function findNamedTypes(params: Params): readonly string[] | Failure {
  const types = params.filter(([name]) => name === '_type').flatMap(([, value]) => value.split(','))
  return types.every(isResourceType)
    ? [...new Set(types)]
    : fail({
        problem: 'bad-search',
        code: 'invalid',
        text: 'Cannot read _type: expected resource types of R4',
      })
}
