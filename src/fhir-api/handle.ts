import { fail } from '../fhir/index.ts'
import { findExcludedType } from './access/excluded-types.ts'
import type { Context, Handler, InteractionOf, Kind } from './context.ts'
import type { Failure } from './failure.ts'
import { capabilities, smartConfiguration } from './interactions/conformance.ts'
import { operation } from './interactions/operation.ts'
import { read, vread } from './interactions/read.ts'
import type { FhirRequest } from './request.ts'
import type { FhirResponse } from './response.ts'

/** FHIR's interactions and their handlers. The backend performs the others. */
const HANDLERS: { readonly [K in Kind]?: Handler<K> } = {
  capabilities,
  'smart-configuration': smartConfiguration,
  read,
  vread,
  operation,
}

/** Performs an interaction that has been allowed, within the access that it was allowed with. */
export async function handle<K extends Kind>(
  context: Context,
  request: FhirRequest<InteractionOf<K>>,
): Promise<FhirResponse | Failure> {
  const { excludedTypes } = context
  const excluded = excludedTypes && findExcludedType(request.interaction, excludedTypes)
  if (excluded !== undefined) return fail({ problem: 'kept-elsewhere', type: excluded })
  const handler: Handler<K> | undefined = HANDLERS[request.interaction.kind as K]
  return handler ? handler(context, request) : context.session.perform(context, request)
}
