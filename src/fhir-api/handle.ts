import { isFailure } from '../core/index.ts'
import { failFor, type WorkKind } from '../fhir/index.ts'
import { bundle } from './bundle/bundle.ts'
import type { Context, Handler } from './context.ts'
import { operation } from './interactions/operations.ts'
import { history, read, vread } from './interactions/read.ts'
import { search } from './interactions/search.ts'
import { write } from './interactions/write.ts'
import { createOnce } from './once.ts'
import { type FhirRequest, findExcludedType, type InteractionOf, type Kind } from './request.ts'
import type { Failure, FhirResponse } from './response.ts'

/** `metadata`. Public. */
const capabilities: Handler<'capabilities'> = async context => {
  const statement = await context.capabilities()
  return isFailure(statement) ? statement : { status: 200, body: statement }
}

const formatConfiguration = createOnce((configuration: object) => JSON.stringify(configuration))

/** `.well-known/smart-configuration`. Public, and plain JSON. */
const smartConfiguration: Handler<'smart-configuration'> = async context => ({
  status: 200,
  headers: { 'content-type': 'application/json; charset=utf-8' },
  body: formatConfiguration(context.smartConfiguration()),
})

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

/** The work of each interaction, beside what is counted where it is done. */
const WORK: { readonly [K in Kind]: WorkKind } = {
  capabilities: 'interaction',
  'smart-configuration': 'interaction',
  read: 'interaction',
  vread: 'interaction',
  'history-instance': 'search',
  'history-type': 'search',
  'history-system': 'search',
  'search-type': 'search',
  'search-system': 'search',
  'search-compartment': 'search',
  operation: 'operation',
  create: 'write',
  update: 'write',
  'update-conditional': 'write',
  patch: 'write',
  'patch-conditional': 'write',
  delete: 'write',
  'delete-conditional': 'write',
  bundle: 'interaction',
}

/** Performs an allowed interaction, within the access of its decision. */
export function handle<K extends Kind>(
  context: Context,
  request: FhirRequest<InteractionOf<K>>,
): Promise<FhirResponse | Failure> {
  const { excludedTypes } = context
  const excluded = excludedTypes && findExcludedType(request.interaction, excludedTypes)
  if (excluded !== undefined) return Promise.resolve(failFor('excluded-type', { type: excluded }))
  const excess = request.work.count(WORK[request.interaction.kind])
  if (excess) return Promise.resolve(excess)
  return HANDLERS[request.interaction.kind as K](context, request)
}
