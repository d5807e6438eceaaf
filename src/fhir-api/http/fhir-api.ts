import type { IncomingHttpHeaders } from 'node:http'
import type { FhirAudit } from '../../audit/index.ts'
import {
  type BodyLimits,
  formatAsForm,
  type Interaction,
  type Misunderstood,
  parseInteraction,
  type Work,
} from '../../fhir/index.ts'
import type { Authenticated, Authenticator, VersionAccess } from '../../smart/index.ts'
import type { Counter, Origins } from '../../web/http/index.ts'
import type { CacheCounts } from '../access-cache.ts'
import type { FhirBackend } from '../backend.ts'
import type { Exports } from '../exports.ts'
import type { CallerConnection, StreamedContent } from '../request.ts'
import type { Failure } from '../response.ts'

/** Everything that the handling of a request needs. */
export interface FhirApi extends BaseLocation {
  readonly guard: CountingAuthenticator
  readonly decisions: Counter
  readonly audit: FhirAudit | undefined
  readonly backend: FhirBackend
  readonly versionAccess: VersionAccess
  readonly smartConfiguration: () => object
  readonly clock: () => number
  readonly exports: Exports | undefined
  readonly bodyLimits: BodyLimits
  /** The work that one request may cause. */
  readonly createWork: () => Work
  /** The largest content of a Binary, in bytes, if the backend takes it as a stream and it is larger than a body. */
  readonly contentLimit: number | undefined
  readonly origins: Origins
}

/** Counts the decisions that it makes. */
export interface CountingAuthenticator extends Authenticator {
  /** How often the caller of a valid token was cached. */
  count(): CacheCounts
  /** Whether the decision about an interaction would allow it. It does not count. */
  mayAllow(caller: Authenticated, interaction: Interaction, work: Work): boolean
}

/** A request to the API: an HTTP request, or one that another way in makes (`way-in.ts`). */
export interface ApiRequest {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  /** The id of the HTTP request. */
  readonly id: string
  readonly ip: string
  readonly raw: {
    readonly url?: string | undefined
    readonly rawHeaders: string[]
    readonly socket: CallerConnection
  }
  readonly log: { error(details: object, text: string): void }
  /** For the audit trail: the tool that makes the request. */
  readonly tool?: string | undefined
  /** Whether the change is only tried. */
  readonly isTrial?: true
  /** Whether the way in takes a page of a search as values. */
  readonly takesSearchset?: true
  /** Whether it is a message of another way in, which made no FHIR request. */
  readonly isCall?: true
  body: unknown
  /** The work that is left for the request. */
  work: Work
  /** The caller, once its token is verified; undefined for public interactions. */
  authenticated: Authenticated | undefined
  /** The meaning of the request. That of a POST may depend on its form, which is read with the body. */
  interaction: Interaction | Misunderstood | undefined
  /** The content of a Binary that is too large for memory. */
  content: StreamedContent | undefined
  /** Why the body could not be decoded. */
  bodyProblem: Failure | undefined
}

interface BaseLocation {
  /** As clients know it, without a trailing slash. */
  readonly baseUrl: string
  readonly basePath: string
}

/** Parses the interaction from the parts of the request that have been read. */
export function findInteraction(
  request: Pick<ApiRequest, 'method' | 'headers' | 'raw' | 'body'>,
  { baseUrl, basePath }: BaseLocation,
): Interaction | Misunderstood {
  const { url = '' } = request.raw
  const at = url.indexOf('?')
  return parseInteraction({
    method: request.method,
    baseUrl,
    path: (at < 0 ? url : url.slice(0, at)).slice(basePath.length),
    query: at < 0 ? '' : url.slice(at + 1),
    headers: request.headers,
    form: formatAsForm(request.headers['content-type'], readBytes(request)),
  })
}

export function readBytes(request: Pick<ApiRequest, 'body'>): Uint8Array | undefined {
  return request.body instanceof Uint8Array ? request.body : undefined
}
