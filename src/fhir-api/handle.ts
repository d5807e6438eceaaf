import { fail } from '../fhir/index.ts'
import { findExcludedType } from './access/excluded-types.ts'
import type { Context } from './context.ts'
import type { Failure } from './failure.ts'
import { bundle } from './interactions/bundle.ts'
import { capabilities, smartConfiguration } from './interactions/conformance.ts'
import { history } from './interactions/history.ts'
import { operation } from './interactions/operation.ts'
import { read, vread } from './interactions/read.ts'
import { search } from './interactions/search.ts'
import { write } from './interactions/write.ts'
import type { FhirRequest, InteractionOf, Kind } from './request.ts'
import type { FhirResponse } from './response.ts'

/** FHIR's interactions and their handlers. */
const HANDLERS: {
  readonly [K in Kind]: (
    context: Context,
    request: FhirRequest<InteractionOf<K>>,
  ) => Promise<FhirResponse | Failure>
} = {
  capabilities,
  'smart-configuration': smartConfiguration,
  read,
  vread,
  'history-instance': history,
  'history-type': history,
  'history-system': history,
  'search-type': search,
  'search-system': search,
  'search-compartment': search,
  operation,
  create: write,
  update: write,
  'update-conditional': write,
  patch: write,
  'patch-conditional': write,
  delete: write,
  'delete-conditional': write,
  bundle,
}

/** Performs an interaction that has been allowed, within the access that it was allowed with. */
export async function handle<K extends Kind>(
  context: Context,
  request: FhirRequest<InteractionOf<K>>,
): Promise<FhirResponse | Failure> {
  const { excludedTypes } = context
  const excluded = excludedTypes && findExcludedType(request.interaction, excludedTypes)
  if (excluded !== undefined) return fail({ problem: 'kept-elsewhere', type: excluded })
  return HANDLERS[request.interaction.kind as K](context, request)
}
