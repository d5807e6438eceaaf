import type { Interaction } from '../fhir/index.ts'
import type { VersionAccess } from '../smart/index.ts'
import type { BackendSession } from './backend.ts'
import type { Failure } from './failure.ts'
import type { FhirRequest } from './request.ts'
import type { FhirResponse } from './response.ts'

/** What the handlers of a request work with. */
export interface Context {
  /** The FHIR base as clients know it. */
  readonly baseUrl: string
  readonly session: BackendSession
  readonly versionAccess: VersionAccess
  /** The content of `.well-known/smart-configuration`. */
  readonly smartConfiguration: () => object
  readonly clock: () => number
  /** `handle`: the entries of a Bundle are handled like requests. */
  readonly handle: (context: Context, request: FhirRequest) => Promise<FhirResponse | Failure>
}

export type Kind = Interaction['kind']
export type InteractionOf<K extends Kind> = Extract<Interaction, { readonly kind: K }>
export type Handler<K extends Kind> = (
  context: Context,
  request: FhirRequest<InteractionOf<K>>,
) => Promise<FhirResponse | Failure>
