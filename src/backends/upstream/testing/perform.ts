import { type Failure, type FhirRequest, type FhirResponse, handle } from '../../../fhir-api/index.ts'
import { createBackend } from '../backend.ts'
import type { GatewayContext } from '../context.ts'

/** Performs a request as the FHIR API does, on the upstream of a context. */
export function performRequest(
  context: GatewayContext,
  request: FhirRequest,
): Promise<FhirResponse | Failure> {
  const backend = createBackend(context)
  const { pages, accessCache, capabilities, excludedTypes } = backend
  return handle(
    {
      baseUrl: context.baseUrl,
      versionAccess: context.versionAccess,
      handle,
      clock: () => 0,
      smartConfiguration: () => ({}),
      pages,
      accessCache,
      capabilities,
      excludedTypes,
      session: backend.forRequest(request),
      isRecorded: context.isRecorded,
    },
    request,
  )
}
