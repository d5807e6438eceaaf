import type { Failure, FhirRequest, FhirResponse, InteractionOf } from '../../fhir-api/index.ts'
import type { Context } from './call.ts'
import { seesAll } from './judge/sees-all.ts'
import { passThrough } from './upstream/pass-through.ts'
import { headersFor, pathOf, queryOf } from './upstream/request-of.ts'

/** Passes a request through where the caller may see everything; undefined where the response has to be inspected. */
export function passRequest(
  context: Context,
  request: FhirRequest,
): Promise<FhirResponse | Failure> | undefined {
  const { interaction, access, preferences } = request
  switch (interaction.kind) {
    case 'read':
    case 'vread':
      // The content of a Binary is taken out of the resource.
      return seesAll(access) && !preferences.content
        ? passRead(context, { ...request, interaction })
        : undefined
    default:
      return undefined
  }
}

function passRead(
  context: Context,
  request: FhirRequest<InteractionOf<'read' | 'vread'>>,
): Promise<FhirResponse | Failure> {
  const { ifNoneMatch, ifModifiedSince } = request.preconditions
  const params = request.interaction.params.filter(([name]) => name !== '_format' && name !== '_pretty')
  const query = queryOf(params, context.addresses)
  const path = pathOf(request.interaction)
  return passThrough(context, request, {
    method: 'GET',
    path: query === '' ? path : `${path}?${query}`,
    headers: {
      ...headersFor(request),
      ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }),
      ...(ifModifiedSince !== undefined && { 'if-modified-since': ifModifiedSince }),
    },
  })
}
